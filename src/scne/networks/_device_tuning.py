"""Tuning on an NVIDIA GPU: the steps of `tune_nodes` for all networks of an ensemble at once, recorded and replayed.

A step on a few hundred rows is far too little for a GPU, and starting its kernels takes longer than running them. So
the networks, which do not know of each other, take their steps together as one batch of products, and a few steps at a
time are recorded once and replayed. Batches of rows, rates and starting points are those of `tune_nodes`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.networks._activations import Activation
from scne.networks._search_rows import SearchRows
from scne.networks._tuning import (
    ANNOUNCED_PARTS,
    FEWEST_TO_TUNE,
    MEAN_DECAY,
    NO_DIVISION_BY_ZERO,
    SQUARE_DECAY,
    TuningSettings,
    batch_places,
    first_output_weights,
    rate_at,
)
from scne.passes import announce
from scne.rows import cast

# Steps that are recorded together: more save starts, and the number of steps is rounded up to a multiple of them by
# steps whose rate is zero.
_RECORDED_STEPS = 8


def tunes_on_device(rows: SearchRows) -> bool:
    """Whether rows live where `tune_together` can work: on an NVIDIA GPU, in PyTorch's hands."""
    return bool(getattr(rows.inputs, "is_cuda", False))


def tune_together(
    rows: SearchRows,
    weights: Sequence[NDArray[np.float64]],
    activation: Activation,
    linked: bool,
    settings: TuningSettings,
    generators: Sequence[np.random.Generator],
) -> list[NDArray[np.float64]]:
    """Nodes after tuning, for networks on the same rows; see `tune_nodes`.

    Parameters
    ----------
    rows : SearchRows
        On a GPU.
    weights : sequence of ndarray of shape (d + 1, L_m)
    activation : Activation
    linked : bool
    settings : TuningSettings
    generators : sequence of numpy Generator
        Each draws the order of the rows for one network.
    """
    if rows.n_distinct < FEWEST_TO_TUNE:
        return list(weights)
    tuner = _Tuner(rows, weights, activation, rows.n_linked if linked else 0, settings, generators)
    tuner.run()
    found = tuner.nodes_of_each()
    announce("tuning", ANNOUNCED_PARTS, ANNOUNCED_PARTS)
    return found


class _Tuner:
    """Parameters, gradients and running means of M networks, each kind of weight in one tensor."""

    def __init__(
        self,
        rows: SearchRows,
        weights: Sequence[NDArray[np.float64]],
        activation: Activation,
        n_links: int,
        settings: TuningSettings,
        generators: Sequence[np.random.Generator],
    ) -> None:
        import torch

        self.torch, self.activation, self.n_links = torch, activation, n_links
        n, device = rows.n_training, rows.inputs.device
        self.inputs, self.targets = cast(rows.inputs[:n, :], "float32"), cast(rows.targets[:n, :], "float32")
        self.roots = None if rows.root_weights is None else cast(rows.root_weights[:n, None], "float32")
        self.sizes = [nodes.shape[1] for nodes in weights]
        self.batch, steps = min(n, settings.batch_rows), settings.n_steps(rows)
        self.scale = 2.0 * n / (self.batch * rows.training_weight)

        def on_device(values: NDArray) -> Any:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        self.n_replays = -(-steps // _RECORDED_STEPS)
        padded = self.n_replays * _RECORDED_STEPS
        places = np.stack([batch_places(n, self.batch, padded, generator) for generator in generators], axis=1)
        self.places = on_device(places)
        taken = np.arange(1, padded + 1)
        shares = np.array([rate_at(step, steps) if step < steps else 0.0 for step in range(padded)])
        corrections = [1.0 / np.sqrt(1.0 - SQUARE_DECAY**taken), -shares / (1.0 - MEAN_DECAY**taken)]
        self.corrections = on_device(np.stack(corrections, axis=1).astype(np.float32))
        self.step = torch.zeros(1, dtype=torch.int64, device=device)
        self._lay_out(rows, weights, settings, on_device)

    def _lay_out(
        self, rows: SearchRows, weights: Sequence[NDArray[np.float64]], settings: TuningSettings, on_device: Any
    ) -> None:
        """Networks with fewer nodes than others get nodes of zeros, which no step moves."""
        d, q, most, gain = weights[0].shape[0], self.targets.shape[1], max(self.sizes), self.activation.input_gain
        nodes = np.zeros((len(weights), d, most))
        rates = np.zeros_like(nodes)
        outputs = np.zeros((len(weights), most, q))
        links = np.zeros((len(weights), self.n_links, q))
        for m, own in enumerate(weights):
            size = self.sizes[m]
            nodes[m, :, :size] = own * gain
            rates[m, :, :size] = np.where(own != 0.0, settings.input_rate * gain, 0.0)
            start = first_output_weights(rows, nodes[m, :, :size].astype(np.float32), self.activation, self.n_links)
            outputs[m, :size], links[m] = start[:size], start[size:]
        output_rates = np.full(outputs.shape, settings.output_rate) * (outputs != 0.0).any(axis=2, keepdims=True)
        kinds = (nodes, outputs, links)
        self.parameters = on_device(np.concatenate([kind.ravel() for kind in kinds]).astype(np.float32))
        self.rates = on_device(
            np.concatenate([rates.ravel(), output_rates.ravel(), np.full(links.size, settings.output_rate)]).astype(
                np.float32
            )
        )
        self.gradient, self.mean, self.square = (self.torch.zeros_like(self.parameters) for _ in range(3))
        ends = np.cumsum([0, *(kind.size for kind in kinds)])

        def views(flat: Any) -> list[Any]:
            return [flat[ends[k] : ends[k + 1]].view(kinds[k].shape) for k in range(3)]

        self.nodes, self.outputs, self.links = views(self.parameters)
        self.node_gradient, self.output_gradient, self.link_gradient = views(self.gradient)

    def run(self) -> None:
        """All steps."""
        torch = self.torch
        before = [one.clone() for one in (self.parameters, self.mean, self.square, self.step)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._one_step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_RECORDED_STEPS):
                self._one_step()
        # The step that warmed up is taken back.
        for one, old in zip((self.parameters, self.mean, self.square, self.step), before, strict=True):
            one.copy_(old)
        for _ in range(self.n_replays):
            graph.replay()

    def _one_step(self) -> None:
        torch, n_links = self.torch, self.n_links
        chosen = self.places.index_select(0, self.step).view(-1)
        shape = (len(self.sizes), self.batch, -1)
        x, wanted = (one.index_select(0, chosen).view(shape) for one in (self.inputs, self.targets))
        hidden = self.activation.core(torch.bmm(x, self.nodes))
        error = torch.bmm(hidden, self.outputs)
        if n_links:
            error.baddbmm_(x[:, :, :n_links], self.links)
        roots = None if self.roots is None else self.roots.index_select(0, chosen).view(shape)
        if roots is not None:
            error *= roots
        error -= wanted
        if roots is not None:
            error *= roots
        error *= self.scale
        torch.bmm(hidden.transpose(1, 2), error, out=self.output_gradient)
        if n_links:
            torch.bmm(x[:, :, :n_links].transpose(1, 2), error, out=self.link_gradient)
        backward = torch.bmm(error, self.outputs.transpose(1, 2))
        backward *= self.activation.core_slope(hidden)
        torch.bmm(x.transpose(1, 2), backward, out=self.node_gradient)
        self._move()
        self.step += 1

    def _move(self) -> None:
        """One step of Adam, as `_Adam.step` takes it."""
        root, share = self.corrections.index_select(0, self.step).unbind(dim=1)
        self.mean.lerp_(self.gradient, 1.0 - MEAN_DECAY)
        self.square.mul_(SQUARE_DECAY).addcmul_(self.gradient, self.gradient, value=1.0 - SQUARE_DECAY)
        size = self.square.sqrt().mul_(root).add_(NO_DIVISION_BY_ZERO)
        self.parameters.addcmul_(self.mean.div(size).mul_(self.rates), share)

    def nodes_of_each(self) -> list[NDArray[np.float64]]:
        """The tuned weights (d + 1, L_m) of each network."""
        found = self.nodes.double().cpu().numpy() / self.activation.input_gain
        return [np.ascontiguousarray(found[m, :, :size]) for m, size in enumerate(self.sizes)]
