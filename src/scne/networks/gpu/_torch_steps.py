"""Steps of tuning made of PyTorch's kernels, for what Triton's are not written for."""

from typing import TYPE_CHECKING

from scne.networks._numpy_steps import MEAN_DECAY, NO_DIVISION_BY_ZERO, SQUARE_DECAY
from scne.networks.gpu._tuning_layout import DeviceNetworks, DeviceRows

if TYPE_CHECKING:
    import torch


class TorchSteps:
    """Steps of M networks on the same rows, a few dozen kernels each.

    Parameters
    ----------
    rows : DeviceRows
    networks : DeviceNetworks
    places : tensor of int32, shape (held, M, batch)
        Rows of the steps that come next; those of step s are at s modulo `held`.
    """

    # A recording holds all that these steps allocate; more of them save little.
    recorded_steps = 8

    def __init__(self, rows: DeviceRows, networks: DeviceNetworks, places: "torch.Tensor") -> None:
        import torch

        self.torch, self.rows, self.networks, self.places = torch, rows, networks, places
        self.gradient = torch.zeros_like(networks.parameters)
        self.nodes, self.outputs = networks.views(networks.parameters)
        self.node_gradient, self.output_gradient = networks.views(self.gradient)

    def take(self, count: int) -> None:
        """The next few steps."""
        for _ in range(count):
            self._follow_back()
            self._move()
            self.networks.step.add_(1)

    def _follow_back(self) -> None:
        torch, rows, activation = self.torch, self.rows, self.networks.activation
        chosen = self.places.index_select(0, self.networks.step % len(self.places)).view(-1)
        shape = (self.networks.shape[0], rows.batch, -1)
        x, wanted = (values.index_select(0, chosen).view(shape) for values in (rows.inputs, rows.targets))
        hidden = torch.bmm(x, self.nodes)
        activated = hidden[:, :, : self.networks.n_nodes]
        # Works in place, as its slope does below.
        activation.core(activated)
        error = torch.bmm(hidden, self.outputs.transpose(1, 2))
        roots = None if rows.roots is None else rows.roots.index_select(0, chosen).view(shape)
        if roots is not None:
            error *= roots
        error -= wanted
        if roots is not None:
            error *= roots
        error *= rows.scale
        torch.bmm(error.transpose(1, 2), hidden, out=self.output_gradient)
        backward = torch.bmm(error, self.outputs)
        backward[:, :, : self.networks.n_nodes] *= activation.core_slope(activated)
        torch.bmm(x.transpose(1, 2), backward, out=self.node_gradient)

    def _move(self) -> None:
        """One step of Adam, as `_Adam.step` takes it."""
        networks = self.networks
        root, share = networks.corrections.index_select(0, networks.step).unbind(dim=1)
        networks.means.lerp_(self.gradient, 1.0 - MEAN_DECAY)
        networks.squares.mul_(SQUARE_DECAY).addcmul_(self.gradient, self.gradient, value=1.0 - SQUARE_DECAY)
        size = networks.squares.sqrt().mul_(root).add_(NO_DIVISION_BY_ZERO)
        networks.parameters.addcmul_(networks.means.div(size).mul_(networks.rates), share)
