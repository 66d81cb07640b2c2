"""How the hidden layer of a stochastic configuration network comes about: searched by SC-III, and then tuned or not."""

from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checkpoint import Form
from scne.fitting._members import Member
from scne.networks import (
    ACTIVATIONS,
    BuiltNetwork,
    ChosenNodes,
    HiddenLayer,
    Loss,
    SearchRows,
    SearchSettings,
    SourceLimit,
    TuningSettings,
    build_network,
    pool_generator,
    prepare_search,
    search_kernels,
    searches_on_device,
    tune_nodes,
    tune_together,
    tunes_on_device,
)
from scne.passes import DeviceEngine, ThreadEngine
from scne.rows import ArrayRows, ColumnScaling, FeatureGroup, InputScaling, is_numpy

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite

# With fewer rows a search takes little time in either precision, and may come close to fitting every row, where single
# precision would choose nodes by its rounding errors.
FLOAT32_FROM_ROWS = 5_000
# Tuned nodes follow their rows closely, so few rows get few of them: one for so many different rows.
ROWS_PER_TUNED_NODE = 4
# Rows up to which a search that is followed by tuning on a device is done by the processor, without recorded kernels.
MOST_TO_SEARCH_HERE = 20_000
# Rows up to which two searches at a time take as long as one after the other.
MOST_FOR_ONE_SEARCH = 5_000
# The random streams of a network's tuning are named apart from those of its pools, whose second name is a node.
_TUNING_STREAM = 1 << 32
# Kinds of networks are tried from so many rows on: held-out shares of fewer choose by chance.
FEWEST_TO_CHOOSE = 2_000
# Networks that are tuned for so many rounds are worth building twice where rows are few.
LEAST_EPOCHS_TO_REPEAT = 10.0
# Targets beyond so many deviations are seen as if they were there by the search for other losses than the squared one.
FARTHEST_SEARCHED = 3.0
# Ramps of a column that has few and of one that has many, and the most of all columns together.
COARSE_RAMPS, FINE_RAMPS, MOST_FINE_RAMPS = 4, 32, 512


@dataclass(frozen=True)
class NetworkPlan:
    """The checked settings of a network; the names and meanings are those of `SCNRegressor`.

    A plan also says what kind of network it is: `ramps` is the number for each column, None where rows and columns
    decide, and `uncorrelated` whether tuning sees the features of a column without their correlations.
    """

    search: SearchSettings
    pool_rows: int | None
    tuning_epochs: float
    n_threads: int
    builds_alone: bool
    ramps: int | None = None
    uncorrelated: bool = False

    @property
    def ridge(self) -> float:
        """Of the network by itself."""
        return self.search.ridge

    @property
    def criterion(self) -> str:
        """By which candidates were admitted."""
        return self.search.criterion

    def largest_layer(self, n_columns: int) -> int:
        """The most outputs that a hidden layer on `n_columns` can have."""
        return self.search.max_hidden + (n_columns if self.search.direct_link else 0)

    def within(self, limit: SourceLimit) -> "NetworkPlan":
        """The same with nodes that read columns of a few sources; the limit is of all columns."""
        return replace(self, search=replace(self.search, sources=limit))

    def _search_on(self, columns: NDArray[np.intp]) -> SearchSettings:
        """The settings of a search on some of the columns."""
        limit = self.search.sources
        return self.search if limit is None else replace(self.search, sources=limit.on(columns))

    @property
    def repeats(self) -> bool:
        """Whether nodes are tuned so closely that they miss a share of few rows."""
        return self.tuning_epochs >= LEAST_EPOCHS_TO_REPEAT

    def dtype(self, site: "BuildingSite") -> np.dtype:
        """The type of numbers of the search."""
        if isinstance(site.engine, DeviceEngine):
            return np.dtype(site.engine.dtype)
        if site.precision == "auto":
            return np.dtype(np.float32 if site.rows.n_rows >= FLOAT32_FROM_ROWS else np.float64)
        return np.dtype(np.float64 if site.precision == "float64" else np.float32)

    def basis_bytes(self, site: "BuildingSite") -> float:
        """Memory for the orthonormal basis: a budget of the processor's memory says nothing of a device's."""
        if isinstance(site.engine, DeviceEngine):
            return 0.3 * site.engine.free_bytes()
        return site.basis_bytes

    def build(self, group: FeatureGroup, index: int, site: "BuildingSite") -> Member:
        """A network on the columns of one group; `index` names its random streams."""
        scaling, rows = site.prepared(group.columns, self.dtype(site), self.ramps)
        found = _searched(self, rows, group, index, site)
        nodes = _tuned(self, rows, found, group.name, index, site) if self.tuning_epochs else None
        return _member(self, group, scaling, found, nodes)

    def kinds(self, groups: Sequence[FeatureGroup], site: "BuildingSite") -> tuple["NetworkPlan", ...]:
        """This plan, and where there are ramps those with uncorrelated features, with many ramps, and with few.

        This one alone for networks on different columns, which cannot be compared.
        """
        for group in groups:
            if not np.array_equal(group.columns, groups[0].columns):
                return (self,)
        held_out = site.held_out_rows is not None or site.held_out_places is not None
        ramps = np.bincount(site.scaling.feature_columns) - 1
        usual, graded = int(ramps.max()), int(np.count_nonzero(ramps))
        suits = site.rows.n_rows >= FEWEST_TO_CHOOSE and 0 < graded <= MOST_FINE_RAMPS
        if self.search.direct_link or not (self.tuning_epochs and held_out and suits):
            return (self,)
        found = [self, replace(self, uncorrelated=True)]
        fine = min(FINE_RAMPS, MOST_FINE_RAMPS // graded)
        if fine >= 2 * usual:
            found.append(replace(self, ramps=fine))
        if usual >= 2 * COARSE_RAMPS:
            found.append(replace(self, ramps=COARSE_RAMPS))
        # Half of the networks at most are trials.
        return tuple(found[: max(1, len(groups) // 2)])

    @property
    def further(self) -> "NetworkPlan | None":
        """The kind to try next where this one is best: where few ramps are, a single one may be better still."""
        return replace(self, ramps=1) if self.ramps == COARSE_RAMPS else None

    def build_together(
        self, groups: Sequence[FeatureGroup], site: "BuildingSite", indices: Sequence[int]
    ) -> tuple[Member, ...] | None:
        """Members of these indices, tuned at once on a GPU; None if they do not share columns, or there is none."""
        same = all(np.array_equal(group.columns, groups[0].columns) for group in groups)
        scaling, rows = site.prepared(groups[0].columns, self.dtype(site), self.ramps)
        if not (same and self.tuning_epochs and tunes_on_device(rows)):
            return None
        found = _searched_here(self, rows, groups, site, indices)
        kept = [_kept_weights(site, m, one) for m, one in zip(indices, found, strict=True)]
        tuned = [weights for weights in kept if weights is not None]
        if len(tuned) < len(groups):
            nodes = [np.vstack([one.weights, one.biases]) for one in found]
            view = site.uncorrelated(rows) if self.uncorrelated else None
            tuned = tune_together(
                rows if view is None else view.rows,
                nodes if view is None else list(map(view.nodes_on, nodes)),
                ACTIVATIONS[self.search.activation],
                self.search.direct_link,
                TuningSettings(self.tuning_epochs, loss=site.loss),
                [pool_generator(site.seed, m, _TUNING_STREAM) for m in indices],
            )
            tuned = tuned if view is None else list(map(view.nodes_off, tuned))
            for m, weights in zip(indices, tuned, strict=True):
                if site.checkpoint:
                    site.checkpoint.save(f"tuned-{m}{site.ending}", {"weights": weights})
        return tuple(
            _member(self, group, scaling, one, nodes) for group, one, nodes in zip(groups, found, tuned, strict=True)
        )

    def grow(self, member: Member, index: int, n: int, rows: ArrayRows, site: "BuildingSite") -> Member:
        """The same network with up to n nodes more: the search, continued on rows whose targets it is to explain."""
        layer, known = member.layer, member.search
        q = rows.targets.shape[1] if rows.targets is not None else 1
        unscaled = ColumnScaling(np.zeros(q), np.ones(q))
        search = prepare_search(
            rows,
            layer.columns,
            layer.scaling,
            unscaled,
            site.engine,
            site.held_out_places,
            dtype=self.dtype(site),
            directions=None if site.directions is None else site.directions[layer.columns],
        )
        # Rows that are held out choose no number of nodes here: the user has.
        search = search.first_training(self.pool_rows or search.n_training)
        unknown = np.full(layer.n_nodes, np.nan)
        found = build_network(
            search,
            replace(self._search_on(layer.columns), max_hidden=layer.n_nodes + n),
            site.seed,
            index,
            site.engine,
            self.basis_bytes(site),
            f"growing {member.name}",
            ChosenNodes(
                np.ascontiguousarray(np.vstack([layer.weights, layer.biases]).T),
                unknown if known is None else known.scopes[: layer.n_nodes],
                unknown if known is None else known.contractions[: layer.n_nodes],
            ),
        )
        nodes = np.vstack([found.weights, found.biases])
        return Member(member.name, layer_with_nodes(layer, nodes), replace(found, chosen=None))


def layer_with_nodes(layer: HiddenLayer, nodes: NDArray[np.float64]) -> HiddenLayer:
    """The same layer with other nodes (d + 1, L), the biases being the last row."""
    return replace(layer, weights=np.ascontiguousarray(nodes[:-1]), biases=nodes[-1].copy())


def _member(
    plan: NetworkPlan,
    group: FeatureGroup,
    scaling: InputScaling,
    found: BuiltNetwork,
    nodes: NDArray[np.float64] | None,
) -> Member:
    """A network with the nodes that were found, or with tuned ones (d + 1, L), the biases being the last row."""
    if nodes is not None:
        found = replace(found, weights=np.ascontiguousarray(nodes[:-1]), biases=nodes[-1].copy())
    activation, linked = plan.search.activation, plan.search.direct_link
    layer = HiddenLayer(group.columns, scaling, found.weights, found.biases, activation, linked)
    return Member(group.name, layer, replace(found, chosen=None))


def _searched_here(
    plan: NetworkPlan, rows: SearchRows, groups: Sequence[FeatureGroup], site: "BuildingSite", indices: Sequence[int]
) -> list[BuiltNetwork]:
    """What SC-III finds for each network; on few rows the processor's threads are faster than plain kernels."""
    few = rows.first_training(plan.pool_rows or rows.n_training)
    if few.n_training > MOST_TO_SEARCH_HERE or searches_on_device(few, plan.search):
        return [_searched(plan, few, group, m, site) for m, group in zip(indices, groups, strict=True)]
    few = few.in_numpy()
    alone = replace(site, engine=ThreadEngine(1))

    def search(task: tuple[Context, int, FeatureGroup]) -> BuiltNetwork:
        context, index, group = task
        return context.run(_searched, plan, few, group, index, alone)

    with ThreadEngine(plan.n_threads) as engine:
        return list(
            engine.map(search, iter([(copy_context(), m, group) for m, group in zip(indices, groups, strict=True)]))
        )


def _searched(
    plan: NetworkPlan, rows: SearchRows, group: FeatureGroup, index: int, site: "BuildingSite"
) -> BuiltNetwork:
    """The nodes that SC-III finds on these rows, or has found: a network that is built again is only tuned again."""
    if index in site.searched:
        return site.searched[index]
    settings = plan._search_on(group.columns)
    if plan.tuning_epochs:
        rows = rows.first_training(plan.pool_rows or rows.n_training)
        most = max(1, rows.n_distinct // ROWS_PER_TUNED_NODE)
        settings = replace(settings, max_hidden=min(settings.max_hidden, most))
    elif plan.pool_rows is not None:
        rows = rows.first_training(plan.pool_rows)
    stage = f"network-{index}{site.ending}"
    kept = site.checkpoint.load(stage, _nodes_form(rows.n_columns)) if site.checkpoint else None
    rows = _within_reach(rows, site.loss)
    budget = plan.basis_bytes(site)
    kernels = search_kernels(rows, settings, budget)
    # Pools on few rows are short calls of NumPy: two searches would only hand the interpreter to and fro.
    waits = rows.n_training <= MOST_FOR_ONE_SEARCH and kernels is None
    with site.one_search if waits else nullcontext():
        found = build_network(
            rows,
            settings,
            site.seed,
            index,
            site.engine,
            budget,
            f"building {group.name}",
            # Kernels add nodes with other last bits than NumPy adds those that were kept, and take a tenth of a second.
            ChosenNodes(**kept) if kept and kernels is None else None,
            partial(site.keep, stage) if site.checkpoint else None,
        )
    if site.checkpoint and found.chosen:
        site.checkpoint.save(stage, found.chosen._asdict())
    site.searched[index] = found
    return found


def _within_reach(rows: SearchRows, loss: Loss) -> SearchRows:
    """The rows with targets limited to where most are: the search makes squares small, to which gross errors are all.

    Logarithms of means are searched on what is left of their own targets.
    """
    if loss.is_squared:
        return rows
    if loss.is_log:
        return replace(rows, targets=np.minimum(rows.targets, FARTHEST_SEARCHED))
    reach = FARTHEST_SEARCHED if rows.root_weights is None else FARTHEST_SEARCHED * rows.root_weights[:, None]
    return replace(rows, targets=np.clip(rows.targets, -reach, reach))


def _tuned(
    plan: NetworkPlan, rows: SearchRows, found: BuiltNetwork, name: str, index: int, site: "BuildingSite"
) -> NDArray[np.float64]:
    """The same nodes (d + 1, L) after tuning on all rows of the search, the biases being the last row."""
    kept = _kept_weights(site, index, found) if site.checkpoint else None
    if kept is not None:
        return kept
    # Steps of a few hundred rows each: the processor takes them, wherever the rows are.
    rows = rows if is_numpy(rows.inputs) else rows.in_numpy()
    nodes = np.vstack([found.weights, found.biases])
    view = site.uncorrelated(rows) if plan.uncorrelated else None
    weights = tune_nodes(
        rows if view is None else view.rows,
        nodes if view is None else view.nodes_on(nodes),
        ACTIVATIONS[plan.search.activation],
        plan.search.direct_link,
        TuningSettings(plan.tuning_epochs, loss=site.loss),
        pool_generator(site.seed, index, _TUNING_STREAM),
        f"tuning {name}",
    )
    weights = weights if view is None else view.nodes_off(weights)
    if site.checkpoint:
        site.checkpoint.save(f"tuned-{index}{site.ending}", {"weights": weights})
    return weights


def _nodes_form(n_columns: int) -> dict[str, Form]:
    """What the nodes that a checkpoint holds look like."""
    return {"weights": ("float64", "k", n_columns + 1), "scopes": ("float64", "k"), "contractions": ("float64", "k")}


def _kept_weights(site: "BuildingSite", index: int, found: BuiltNetwork) -> NDArray[np.float64] | None:
    """The tuned weights (d + 1, L) of a network, where a checkpoint has them."""
    shape = found.weights.shape[0] + 1, found.weights.shape[1]
    form: dict[str, Form] = {"weights": ("float64", *shape)}
    kept = site.checkpoint.load(f"tuned-{index}{site.ending}", form) if site.checkpoint else None
    return None if kept is None else kept["weights"]
