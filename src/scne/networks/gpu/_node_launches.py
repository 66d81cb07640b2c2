"""Starts the kernels that add a chosen node to the basis (`_node_kernels`); importing this needs Triton."""

import torch
import triton

from scne.networks.gpu._fused import FusedShape
from scne.networks.gpu._node_kernels import coefficients, conclude, finish, fresh_column, project, settle
from scne.networks.gpu._pool_launches import NODES_AT_ONCE, SearchBuffers, padded_nodes

# Rows of a program that works on single columns, with many rows and with few.
_COLUMN_ROWS, _FEW_COLUMN_ROWS, _MANY_ROWS = 512, 64, 100_000


class NodeKernels:
    """The kernels that add a node, with the sums that they hand to each other.

    Parameters
    ----------
    shape : FusedShape
    buffers : SearchBuffers
    device : torch device

    Attributes
    ----------
    fresh : tensor of shape (N,)
        The new column.
    """

    def __init__(self, shape: FusedShape, buffers: SearchBuffers, device: torch.device) -> None:
        self._shape, self._buffers = shape, buffers
        n, q, capacity = shape.n_rows, shape.n_targets, shape.plan.capacity
        single, double = {"dtype": torch.float32, "device": device}, {"dtype": torch.float64, "device": device}
        self.fresh = torch.zeros(n, **single)
        self._nodes = padded_nodes(capacity)
        self._ridge_rows = torch.zeros((capacity, capacity), **double)
        self._ridge_row = torch.zeros(capacity, **double)
        self._ridge_residual = torch.zeros((capacity, q), **double)
        self._settled = torch.zeros(3 + q, **double)
        self._exact = torch.zeros(self._nodes, **double)
        self._column_rows = _COLUMN_ROWS if n >= _MANY_ROWS else _FEW_COLUMN_ROWS
        self._programs = triton.cdiv(n, self._column_rows)
        self._sums = torch.zeros((self._programs, self._nodes + 1), **single)
        self._after = torch.zeros((self._programs, q + 1), **double)
        self._left = torch.zeros((self._programs, 2 * q), **double)

    def begin(self) -> None:
        """Start a network without nodes."""
        self._ridge_rows.zero_()
        self._ridge_residual.zero_()

    def append(self, given: torch.Tensor, offset: int, outcome: torch.Tensor) -> None:
        """Add the chosen node, if there is one, and say in `outcome` what became of it."""
        shape, buffers, grid = self._shape, self._buffers, (self._programs,)
        n, q, ridged = shape.n_rows, shape.n_targets, shape.plan.ridge > 0
        many = n >= _MANY_ROWS
        rows = {"ROWS": self._column_rows, "num_warps": 8 if many else 4}
        fresh_column[grid](
            buffers.inputs,
            buffers.node,
            buffers.inputs if buffers.roots is None else buffers.roots,
            buffers.columns,
            self.fresh,
            self._sums,
            given,
            buffers.state,
            offset,
            n,
            shape.n_training,
            shape.gain,
            D=shape.width,
            L=self._nodes,
            NODES=NODES_AT_ONCE,
            WEIGHTED=buffers.roots is not None,
            LOGISTIC=shape.kind == "logistic",
            **rows,
        )
        for again in (False, True):
            coefficients[(1,)](
                self._sums,
                given,
                buffers.state,
                offset,
                self._settled,
                self._exact,
                self._ridge_row,
                self._ridge_rows,
                self._programs,
                shape.plan.capacity,
                shape.plan.ridge**0.5,
                shape.plan.enough_above,
                L=self._nodes,
                PROGRAMS=max(16, 8192 // self._nodes),
                AGAIN=again,
                RIDGE=ridged,
                num_warps=16 if ridged and self._nodes > 64 else 8,
            )
            project[grid](
                self.fresh,
                buffers.columns,
                self._exact,
                buffers.residual,
                self._sums,
                self._after,
                given,
                buffers.state,
                offset,
                n,
                shape.n_training,
                Q=q,
                L=self._nodes,
                NODES=NODES_AT_ONCE,
                AGAIN=again,
                **rows,
            )
        settle[(1,)](
            self._after,
            given,
            buffers.state,
            offset,
            self._settled,
            self._ridge_row,
            self._ridge_rows,
            self._ridge_residual,
            self._programs,
            shape.plan.capacity,
            shape.plan.dependence,
            Q=q,
            L=self._nodes,
            PROGRAMS=1024,
            RIDGE=ridged,
            num_warps=8,
        )
        finish[grid](
            self.fresh,
            buffers.columns,
            buffers.residual,
            self._settled,
            self._left,
            given,
            buffers.state,
            offset,
            n,
            shape.n_training,
            Q=q,
            **rows,
        )
        conclude[(1,)](
            self._left,
            self._settled,
            given,
            buffers.state,
            offset,
            buffers.excluded,
            buffers.squares,
            outcome,
            self._programs,
            shape.plan.n_candidates,
            Q=q,
            PROGRAMS=1024,
            num_warps=8,
        )
