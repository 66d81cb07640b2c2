"""The search by a compiled kernel: for sparse pools on few rows in memory, as networks are found that will be tuned."""

import ctypes
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from scne.networks._basis import FEW_ROWS, PROJECT_AGAIN_BELOW, GrowingBasis
from scne.networks._built import ChosenNode, SearchSettings
from scne.networks._criteria import NOTHING_LEFT
from scne.networks._directions import turns_of
from scne.networks._layer import ACTIVATIONS
from scne.networks._pools import Pools
from scne.networks._search_rows import SearchRows
from scne.networks.compiled import KERNELS, Kernels, SearchTask
from scne.passes import Engine
from scne.rows import is_numpy

# Rows of a tile of inputs: SEARCH_ROWS of search.h.
_TILE = 64


def search_kernels(rows: SearchRows, settings: SearchSettings, memory_budget: float) -> Kernels | None:
    """The kernels, if a search can be left to them."""
    numbers = settings.max_hidden * rows.n_rows
    suits = settings.pool == "sparse" and settings.criterion == "orthogonal" and not settings.direct_link
    few = rows.n_rows == rows.n_training <= FEW_ROWS and is_numpy(rows.inputs)
    known = ACTIVATIONS[settings.activation].recorded_name is not None
    return KERNELS if suits and few and known and 8 * numbers <= memory_budget else None


class CompiledBasis(GrowingBasis):
    """A basis whose nodes are found and added by a kernel, without the interpreter.

    The arrays of the parent are views of arrays whose rows are filled up with zeros, so that its methods work on them.
    """

    def __init__(
        self, kernels: Kernels, rows: SearchRows, settings: SearchSettings, engine: Engine, memory_budget: float
    ) -> None:
        activation = ACTIVATIONS[settings.activation]
        super().__init__(rows, activation, settings.max_hidden, engine, memory_budget, settings.ridge)
        n, capacity, dtype, q = rows.n_rows, settings.max_hidden, rows.inputs.dtype, self.residual.shape[1]
        # An odd number of tiles: at a power of two columns would fall on the same few lines of the cache.
        n_padded = _TILE * (-(-n // _TILE) | 1)
        errors, columns = np.zeros((q, n_padded)), np.zeros((capacity, n_padded), dtype=dtype)
        errors[:, :n] = self.residual.T
        self.residual, self._stored = errors[:, :n].T, columns[:, :n]
        inputs, root_weights = np.zeros((n_padded, rows.n_columns + 1), dtype=dtype), np.zeros(n_padded, dtype=dtype)
        inputs[:n], root_weights[:n] = rows.inputs, 1.0 if rows.root_weights is None else rows.root_weights
        tiles = np.ascontiguousarray(inputs.reshape(-1, _TILE, inputs.shape[1]).transpose(0, 2, 1))
        # The features of a column go together; the bias, which all candidates have, is the last column.
        places = np.append(rows.feature_places, rows.feature_places.max() + 1)
        features = np.argsort(places, kind="stable").astype(np.int32)
        first = np.concatenate([[0], np.cumsum(np.bincount(places))]).astype(np.int64)
        contractions, most = np.array(settings.contraction), settings.batch_size
        self._added, self._squares = np.empty(most, dtype=np.int64), np.empty((most + 1, q))
        sizes = (n_padded, len(features), settings.n_candidates, q, len(first) - 1)
        space = np.empty(kernels.library.scne_search_space(*sizes, capacity, most), dtype=np.uint8)
        # Arrays whose addresses the task has must stay.
        self._held = (errors, columns, root_weights, tiles, features, first, contractions, space)
        self._task = SearchTask(*sizes, len(contractions))
        self._task.logistic, self._task.capacity = activation.recorded_name == "logistic", capacity
        for name, array in (
            *(("inputs", tiles), ("root_weights", root_weights), ("first_feature", first), ("features", features)),
            *(("contractions", contractions), ("basis", columns), ("residual", errors), ("factor", self.factor)),
            *(("ridge_rows", self._ridge_rows), ("ridge_residual", self._ridge_residual)),
            *(("added", self._added), ("squares", self._squares), ("space", space)),
        ):
            setattr(self._task, name, array.ctypes.data)
        self._task.ridge, self._task.least_square = self.ridge, self._least_square
        self._task.dependence, self._task.ties = self.resolution
        self._task.project_again_below, self._task.nothing_left = PROJECT_AGAIN_BELOW, NOTHING_LEFT
        single, double = kernels.library.scne_add_nodes, kernels.library.scne_add_double_nodes
        self._add, self._width = single if dtype == np.float32 else double, kernels.width
        self._settings = settings

    def add_nodes(self, pools: Pools, node: int) -> Iterator[ChosenNode]:
        """Draw pools for node L, from the first scope to the last, until one yields nodes; none when none does."""
        settings, task = self._settings, self._task
        for attempt, scopes in enumerate(pools.attempts):
            pool = pools.at(node, attempt)
            weights: NDArray[np.float64] = np.ascontiguousarray(pool * self.activation.input_gain)
            if self.rows.directions is not None:
                turns = turns_of(pool[:-1], self.rows.directions)
                task.turns = turns.ctypes.data
            self._squares[0] = self.squares[0]
            task.pool, task.size, task.node = weights.ctypes.data, self.size, node
            task.most = min(settings.batch_size, settings.max_hidden - node + 1)
            self._add(ctypes.byref(task), self._width)
            self.size = task.size
            for place, candidate in enumerate(self._added[: task.n_added].tolist()):
                self.squares = np.stack([self._squares[place + 1], np.zeros_like(self._squares[0])])
                scope, contraction = scopes[candidate % len(scopes)], settings.contraction[task.contraction]
                yield ChosenNode(pool[:, candidate], scope, contraction)
            if task.n_added:
                return
