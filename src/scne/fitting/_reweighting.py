"""Output weights for losses other than the squared one: weighted least squares, again and again, on fixed nodes.

Every loss here has weights w and targets z of rows whose weighted least squares is its next step (`Loss.working`). So
a round is one pass for the ensemble's own system (Eq. (24)) with G = H'WH and g = H'Wz, once for each output, as each
has weights of its own. lambda and the ridges are chosen in the first rounds, from the weighted squares of held-out
rows, which are the loss there to second order. Then they stay, and the rounds go on until outputs no longer move.
"""

from collections.abc import Callable, Container, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._weights import SERIAL_NODES, STEP_TOL, SolvedWeights, SplitSystems, WeightSettings, chosen
from scne.ncl import Choice, EnsembleSystem, Solution, Status, choose_solver, make_solver
from scne.networks import FARTHEST_JUDGE, Density, Loss, deviations_of
from scne.passes import ClusterRows, Engine, Pass, SystemSums, added, single_threaded_blas, system_sums
from scne.rows import Array, ArrayRows, ColumnScaling, RowBlock, RowSource

# Rounds in which lambda, the ridges and the typical sizes of residuals are looked for, and the most on rows in memory
# and on all others.
CHOICE_ROUNDS, MOST_ROUNDS, MOST_PASSES = 4, 60, 4
# Outputs whose root mean square move is below these, in typical residuals, have arrived: in memory, and on all rows.
LEAST_MOVE, LEAST_MOVE_OF_ALL = 1e-4, 0.03
LEAST_LOG_MOVE = 1e-6
# A round moves no logarithm of a mean by more.
MOST_LOG_STEP = 2.0
# Rows of which the outputs of nodes are computed at a time.
_ROWS = 1_024


@dataclass(frozen=True)
class Rounds:
    """Where the rounds have come to.

    Attributes
    ----------
    weights : ndarray of shape (L, q)
        B.
    deviations : ndarray of shape (q,)
        Typical sizes of residuals.
    density : Density or None
        Of residuals, for the robust loss.
    decorrelation : float
    ridges : ndarray of shape (q, M)
        The same share of the mean diagonal of each output's own H'WH.
    solver : str
    choice : Choice or None
        The table that lambda and the ridges were chosen from, that of the middle one of several outputs.
    history : tuple of float
        The mean loss of each round on the rows in memory, before its step.
    """

    weights: NDArray[np.float64]
    deviations: NDArray[np.float64]
    density: Density | None
    decorrelation: float
    ridges: NDArray[np.float64]
    solver: str
    choice: Choice | None
    history: tuple[float, ...] = ()

    def solved(self, settings: WeightSettings) -> SolvedWeights:
        """As any fit keeps its weights; of several outputs the ridge of the middle one."""
        ridge = self.ridges[len(self.ridges) // 2]
        solution = Solution(self.weights, Status.SOLVED, len(self.history), np.array(self.history), solver=self.solver)
        return SolvedWeights(solution, self.decorrelation, ridge, self.choice, settings.member_weights)


class Weighed(NamedTuple):
    """Weighted sums over rows, of one round.

    Attributes
    ----------
    sums : tuple of SystemSums
        Of each output.
    loss : ndarray of shape ()
        Sum of the loss over rows, times their weights and meant over outputs.
    weight : ndarray of shape ()
        Sum of the rows' weights.
    """

    sums: tuple[SystemSums, ...]
    loss: NDArray[np.float64]
    weight: NDArray[np.float64]


@dataclass(frozen=True)
class WeighedRows:
    """Rows on which rounds are done.

    Attributes
    ----------
    rows : RowSource or ClusterRows
    hidden_outputs : callable
        Inputs (n, d) to the outputs (n, L) of all nodes.
    scaling : ColumnScaling
        Of the targets.
    sizes : tuple of int
        Nodes of each network.
    engine : Engine
    loss : Loss
    signs : ndarray of shape (L,) or None
        That output weights must have, as in `EnsembleSystem`.
    """

    rows: RowSource | ClusterRows
    hidden_outputs: Callable[[Array], Array]
    scaling: ColumnScaling
    sizes: tuple[int, ...]
    engine: Engine
    loss: Loss
    signs: NDArray[np.float64] | None = None

    def only(self, places: Sequence[int]) -> "WeighedRows":
        """Rows in memory with the outputs of some networks alone."""
        assert isinstance(self.rows, ArrayRows)
        nodes = np.split(np.arange(sum(self.sizes)), np.cumsum(self.sizes)[:-1])
        columns = np.concatenate([nodes[place] for place in places])
        rows = replace(self.rows, inputs=np.ascontiguousarray(self.rows.inputs[:, columns]))
        signs = None if self.signs is None else self.signs[columns]
        return replace(self, rows=rows, sizes=tuple(self.sizes[place] for place in places), signs=signs)

    def mean_loss(self, rounds: Rounds) -> float:
        """Of rows in memory that judge a fit: gross errors count as if they were at the end of what does."""
        hidden, targets, counts = _arrays(self)
        outputs = hidden @ rounds.weights / len(self.sizes)
        if self.loss.ignores_gross_errors:
            reach = FARTHEST_JUDGE * rounds.deviations
            targets = outputs + np.clip(targets - outputs, -reach, reach)
        values = self.loss.value(outputs, targets, rounds.deviations).mean(axis=1)
        return float(np.average(values, weights=counts))

    def systems(
        self,
        weights: NDArray[np.float64] | None,
        deviations: NDArray[np.float64],
        density: Density | None,
        judges: bool = False,
    ) -> tuple[list[EnsembleSystem], float]:
        """The system of each output beside the present weights (L, q), or at the start, and the mean loss."""
        shares = None if weights is None else weights / len(self.sizes)
        given = self.hidden_outputs, self.scaling, self.loss, shares, deviations, density, judges
        kernel = partial(_weighed, *given)
        job = Pass(self.rows, kernel, _added, "reweighting rows", row_bytes=24 * sum(self.sizes))
        total: Weighed | None = None
        for _, part in self.engine.results(job):
            part = part._replace(sums=tuple(sums.in_numpy() for sums in part.sums))
            total = part if total is None else _added(total, part)
        assert total is not None
        systems = []
        for sums in total.sums:
            system = EnsembleSystem(sums.gram, sums.moments, sums.target_square, float(sums.weight), self.sizes)
            systems.append(replace(system, signs=self.signs))
        return systems, float(total.loss / total.weight)


def _added(total: Weighed, part: Weighed) -> Weighed:
    sums = tuple(added(mine, others) for mine, others in zip(total.sums, part.sums, strict=True))
    return Weighed(sums, total.loss + part.loss, total.weight + part.weight)


def _weighed(
    hidden_outputs: Callable[[Array], Array],
    scaling: ColumnScaling,
    loss: Loss,
    shares: NDArray[np.float64] | None,
    deviations: NDArray[np.float64],
    density: Density | None,
    judges: bool,
    block: RowBlock,
) -> Weighed:
    """The sums of a block: outputs, weights and targets of its rows, and their weighted products."""
    total, as_it_is = None, ColumnScaling(np.zeros(1), np.ones(1))
    for start in range(0, block.n_rows, _ROWS):
        part = block.part(slice(start, min(start + _ROWS, block.n_rows)))
        hidden, targets = hidden_outputs(part.inputs), scaling.apply(part.targets)
        counts = np.ones(part.n_rows) if part.weights is None else np.asarray(part.weights, dtype=np.float64)
        if loss.is_log:
            assert part.targets is not None
            # Only the rows of the search were seen before.
            loss.check_least(float(np.min(part.targets, where=counts[:, None] > 0, initial=np.inf)))
        outputs = loss.start(targets) if shares is None else hidden @ shares
        working = loss.working(outputs, targets, deviations, density, judges)
        sums = []
        for weights, aims in zip(working.weights.T, working.targets.T, strict=True):
            sums.append(system_sums(RowBlock(0, hidden, aims[:, None], counts * weights), _themselves, as_it_is))
        value = counts @ loss.value(outputs, targets, deviations).mean(axis=1)
        weighed = Weighed(tuple(sums), np.asarray(value), np.asarray(counts.sum()))
        total = weighed if total is None else _added(total, weighed)
    assert total is not None
    return total


def _themselves(hidden: Array) -> Array:
    return hidden


def rounds_in_memory(
    fitted: WeighedRows,
    held_out: WeighedRows | None,
    settings: WeightSettings,
    known: Rounds | None = None,
    same_nodes: bool = True,
) -> Rounds:
    """All rounds on rows whose inputs are the outputs of the nodes.

    With rounds that are known, by their lambda, ridges and sizes of residuals, and from their weights, if they are of
    the same nodes.

    Examples
    --------
    >>> from scne.fitting import check_weight_settings
    >>> from scne.passes import ThreadEngine
    >>> hidden = np.random.default_rng(0).standard_normal((200, 3))
    >>> targets = hidden @ [[1.0], [2.0], [3.0]]
    >>> targets[:20] += 100.0  # gross errors
    >>> settings = check_weight_settings("auto", 0.0, 1e-9, 100, 0.0, None, ["all"])
    >>> scaling, engine = ColumnScaling(np.zeros(1), np.ones(1)), ThreadEngine(1)
    >>> rows = WeighedRows(ArrayRows(hidden, targets), lambda hidden: hidden, scaling, (3,), engine, Loss("huber"))
    >>> rounds_in_memory(rows, None, settings).weights.ravel().round(2)
    array([1., 2., 3.])
    """
    loss, M = fitted.loss, len(fitted.sizes)
    judged = fitted if held_out is None else held_out
    hidden, (apart, targets, counts) = _arrays(fitted)[0], _arrays(judged)
    now, history = known, []
    weights = known.weights if known is not None and same_nodes else None
    for turn in range(MOST_ROUNDS):
        chooses = known is None and turn < CHOICE_ROUNDS
        if chooses:
            gaps = targets - (loss.start(targets) if weights is None else apart @ weights / M)
            deviations = deviations_of(gaps, counts)
            density = Density.of(gaps / deviations, counts) if loss.name == "robust" else None
        else:
            assert now is not None
            deviations, density = now.deviations, now.density
        systems, value = fitted.systems(weights, deviations, density)
        if chooses:
            split = None if held_out is None else held_out.systems(weights, deviations, density, judges=True)[0]
            decorrelation, ridges, choice = _chosen(systems, split, settings)
            solver = choose_solver(systems[0], ridges[0]) if settings.solver == "auto" else settings.solver
            empty = np.zeros((hidden.shape[1], targets.shape[1]))
            now = Rounds(empty, deviations, density, decorrelation, ridges, solver, choice)
        assert now is not None
        history.append(value)
        now = one_step(systems, now, settings)
        if weights is not None:
            moved = hidden @ (now.weights - weights) / M
            largest = np.abs(moved).max()
            if loss.is_log and largest > MOST_LOG_STEP:
                share = MOST_LOG_STEP / largest
                now, moved = replace(now, weights=weights + share * (now.weights - weights)), share * moved
            least = LEAST_LOG_MOVE if loss.is_log else LEAST_MOVE * now.deviations
            if not chooses and (np.sqrt(np.mean(np.square(moved), axis=0)) < least).all():
                break
        weights = now.weights
    assert now is not None
    return replace(now, history=tuple(history))


def rounds_with_or_without(
    worse: Container[int], fitted: WeighedRows, held_out: WeighedRows | None, settings: WeightSettings
) -> tuple[list[int], Rounds]:
    """Rounds for all networks, or without those that are worse, whichever has less loss on the held-out rows."""
    rounds = rounds_in_memory(fitted, held_out, settings)
    everything = list(range(len(fitted.sizes)))
    places = [place for place in everything if place not in worse]
    given = settings.member_weights is not None or not isinstance(settings.ridge, str)
    if len(places) == len(everything) or given or held_out is None:
        return everything, rounds
    fewer = rounds_in_memory(fitted.only(places), held_out.only(places), settings)
    better = held_out.only(places).mean_loss(replace(fewer, deviations=rounds.deviations)) < held_out.mean_loss(rounds)
    return (places, fewer) if better else (everything, rounds)


def rounds_on_all(rows: WeighedRows, start: Rounds, settings: WeightSettings) -> Rounds:
    """A few rounds more, each a pass over all rows, by the lambda and the ridges of rounds on some of them."""
    now = start
    for _ in range(MOST_PASSES):
        systems, value = rows.systems(now.weights, now.deviations, now.density)
        before, now = now, one_step(systems, replace(now, history=(*now.history, value)), settings)
        moved, M = now.weights - before.weights, len(rows.sizes)
        squares = []
        for system, step in zip(systems, moved.T, strict=True):
            squares.append(step @ system.gram @ step / max(system.n_rows, 1.0) / M**2)
        size = 1.0 if rows.loss.is_log else now.deviations
        if (np.sqrt(squares) / size).max() < LEAST_MOVE_OF_ALL:
            break
    return now


def one_step(systems: Sequence[EnsembleSystem], rounds: Rounds, settings: WeightSettings) -> Rounds:
    """The weights of one round, from the system of each output."""
    solver = make_solver(rounds.solver, max_iter=settings.max_iter, tol=settings.tol, step_tol=STEP_TOL)
    weights = np.empty_like(rounds.weights)
    with single_threaded_blas() if len(weights) <= SERIAL_NODES else nullcontext():
        for j, (system, ridge) in enumerate(zip(systems, rounds.ridges, strict=True)):
            weighted = replace(system, member_weights=settings.member_weights)
            weights[:, j] = solver.solve(weighted, rounds.decorrelation, ridge).weights[:, 0]
    return replace(rounds, weights=weights)


def _arrays(rows: WeighedRows) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Outputs of the nodes, scaled targets and weights of rows in memory."""
    assert isinstance(rows.rows, ArrayRows)
    return np.asarray(rows.rows.inputs), rows.scaling.apply(rows.rows.targets), rows.rows.weights


def _chosen(
    systems: Sequence[EnsembleSystem], held_out: Sequence[EnsembleSystem] | None, settings: WeightSettings
) -> tuple[float, NDArray[np.float64], Choice | None]:
    """lambda, the ridges (q, M) and a table: one lambda and one share of the diagonals for all outputs."""
    decorrelation, ridge = settings.decorrelation, settings.ridge
    if not isinstance(decorrelation, str) and not isinstance(ridge, str):
        return decorrelation, np.tile(ridge, (len(systems), 1)), None
    choices = []
    with single_threaded_blas() if systems[0].n_nodes <= SERIAL_NODES else nullcontext():
        for j, system in enumerate(systems):
            weighted = replace(system, member_weights=settings.member_weights)
            choices.append(
                chosen(weighted, settings, None if held_out is None else SplitSystems(weighted, held_out[j]))
            )
    middle = choices[len(choices) // 2]
    if len(choices) == 1:
        # With the slack that prefers a plain average.
        return middle.decorrelation, middle.ridge[None, :], middle
    scores = np.mean([choice.scores / choice.scores.min() for choice in choices], axis=0)
    row, column = np.unravel_index(int(np.argmin(scores)), scores.shape)
    ridges = np.stack([choice.ridges[row] for choice in choices])
    return float(middle.decorrelations[column]), ridges, middle
