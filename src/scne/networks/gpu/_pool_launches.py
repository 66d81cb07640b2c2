"""Starts the kernels that score pools and pick a candidate (`_pool_kernels`); importing this needs Triton."""

from typing import NamedTuple

import torch
import triton

from scne.networks.gpu._fused import FusedShape
from scne.networks.gpu._pool_kernels import add_up, pool_sums, select

# Columns of Q that a program projects a pool on, and that one reads at a time.
_PROJECTED_NODES, NODES_AT_ONCE = 32, 16
# Numbers that the programs of a few pools leave to be added up: 128 MB.
_MOST_SUMS = 1 << 25


class _PoolTiles(NamedTuple):
    """How a pool is cut: rows, candidates and inputs that are multiplied at a time, warps, stages, programs for each
    multiprocessor (more hide each other's waits, and leave more sums to be added up)."""

    rows: int
    candidates: int
    inputs: int
    warps: int
    stages: int
    programs: int


# The fastest of those that were tried on an H200, for few inputs and for many, without projections and with them.
_TILES = {
    (False, False): _PoolTiles(64, 64, 64, 4, 3, 4),
    (False, True): _PoolTiles(32, 128, 64, 4, 2, 2),
    (True, False): _PoolTiles(128, 64, 16, 8, 3, 2),
    (True, True): _PoolTiles(32, 64, 32, 4, 2, 4),
}


class SearchBuffers(NamedTuple):
    """What all kernels of a search share.

    Attributes
    ----------
    inputs : tensor of shape (N, width)
    roots : tensor of shape (N,) or None
    residual : tensor of float64, shape (N, q)
    columns : tensor of shape (capacity, N)
        Q'.
    node : tensor of shape (width,)
        Weights of the chosen candidate.
    excluded : tensor of shape (attempts x T,)
        Candidates of the present pools that depend on present nodes.
    state, squares : tensors of float64
        What the search has come to, and e_q'e_q over the training rows.
    """

    inputs: torch.Tensor
    roots: torch.Tensor | None
    residual: torch.Tensor
    columns: torch.Tensor
    node: torch.Tensor
    excluded: torch.Tensor
    state: torch.Tensor
    squares: torch.Tensor


def padded_nodes(capacity: int) -> int:
    """The nodes for which sums have room."""
    return max(NODES_AT_ONCE, int(triton.next_power_of_2(capacity)))


class PoolKernels:
    """The kernels that choose a node, with the sums that they hand to each other.

    Parameters
    ----------
    shape : FusedShape
    buffers : SearchBuffers
    device : torch device

    Attributes
    ----------
    attempts_at_once : int
        The most pools that a node can be asked for in.
    sums : tensor
        The largest of the buffers that are these kernels' own.
    """

    def __init__(self, shape: FusedShape, buffers: SearchBuffers, device: torch.device) -> None:
        self._shape, self._buffers = shape, buffers
        plan, t = shape.plan, shape.plan.n_candidates
        self._contractions = torch.tensor(plan.contractions, dtype=torch.float64, device=device)
        self._nodes = padded_nodes(plan.capacity)
        self._tiles = _TILES[shape.width > 64, plan.projected]
        self._programs = self._count_programs(device)
        self._height = shape.n_targets + 1 + (self._nodes if plan.projected else 0)
        once = _MOST_SUMS // (self._programs * self._height * t)
        self.attempts_at_once = max(1, min(plan.n_attempts, once))
        most = self.attempts_at_once * t
        self.sums = torch.zeros((self._programs, self._height, most), dtype=torch.float32, device=device)
        self._scores = torch.zeros((self._height, most), dtype=torch.float64, device=device)

    def _count_programs(self, device: torch.device) -> int:
        blocks = int(triton.cdiv(self._shape.n_training, self._tiles.rows))
        if device.type != "cuda":
            return min(blocks, 3)
        return min(blocks, self._tiles.programs * int(torch.cuda.get_device_properties(device).multi_processor_count))

    def choose(self, given: torch.Tensor, offset: int, n_attempts: int) -> None:
        """Choose a node among the candidates of at most so many attempts, or none."""
        shape, tiles, buffers = self._shape, self._tiles, self._buffers
        q, t = shape.n_targets, shape.plan.n_candidates
        width = n_attempts * t
        tile = min(tiles.candidates, max(16, triton.next_power_of_2(width)))
        projected_on = min(_PROJECTED_NODES, self._nodes)
        node_parts = self._nodes // projected_on if shape.plan.projected else 1
        pool_sums[(self._programs, triton.cdiv(width, tile), node_parts)](
            buffers.inputs,
            given,
            buffers.state,
            offset,
            buffers.residual,
            buffers.inputs if buffers.roots is None else buffers.roots,
            buffers.columns,
            self.sums,
            shape.n_training,
            shape.n_rows,
            t,
            width,
            self._height,
            Q=q,
            D=shape.width,
            K=min(shape.width, tiles.inputs),
            T=tile,
            L=projected_on,
            ROWS=tiles.rows,
            WEIGHTED=buffers.roots is not None,
            LOGISTIC=shape.kind == "logistic",
            PROJECTED=shape.plan.projected,
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )
        add_up[(triton.cdiv(width, 32), self._height)](
            self.sums,
            self._scores,
            given,
            buffers.state,
            offset,
            self._programs,
            t,
            width,
            self._height,
            Q=q,
            ROWS=128,
            COLUMNS=32,
            num_warps=4,
        )
        select[(1,)](
            self._scores,
            given,
            buffers.state,
            offset,
            buffers.node,
            buffers.excluded,
            self._contractions,
            buffers.squares,
            t,
            width,
            len(shape.plan.contractions),
            shape.plan.dependence,
            shape.plan.ties,
            shape.plan.ridge / shape.gain**2,
            shape.n_training * torch.finfo(torch.float32).tiny,
            Q=q,
            D=shape.width,
            T=max(16, triton.next_power_of_2(t)),
            C=max(2, triton.next_power_of_2(len(shape.plan.contractions))),
            NODES=NODES_AT_ONCE,
            PROJECTED=shape.plan.projected,
            num_warps=4,
        )
