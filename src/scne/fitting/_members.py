"""From checked rows to solved weights: the steps that every estimator shares."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from operator import add, attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checkpoint import Checkpoint, Form
from scne.fitting._checks import LEAST, check_input_sizes
from scne.ncl import EnsembleSystem
from scne.networks import (
    BuiltNetwork,
    CompiledTerms,
    HiddenLayer,
    each_outputs,
    joint_outputs,
    output_signs,
    rows_at_once,
)
from scne.passes import (
    ClusterRows,
    DeviceEngine,
    Engine,
    Pass,
    SystemSums,
    added,
    system_sums,
)
from scne.rows import (
    Array,
    ArrayRows,
    ColumnScaling,
    ColumnStatistics,
    RowBlock,
    RowSource,
    column_statistics,
    content_keys,
    is_foreign,
    learn_scaling,
    like,
    namespace_of,
    to_numpy,
)

Result = TypeVar("Result")
BlockStatistics = tuple[ColumnStatistics, ColumnStatistics]
AnyRows = RowSource | ClusterRows
# Below this many different rows a held-out share says more about itself than about the model.
FEWEST_TO_HOLD_OUT = 40
# Hidden outputs of one network that a thread holds while it predicts.
_OUTPUT_BYTES = 1 << 22
# Rows among which so many different ones are looked for first.
_LOOKED_AT_FIRST = 1_024


@dataclass(frozen=True)
class Member:
    """A base model of an ensemble, without its output weights.

    Attributes
    ----------
    name : str
        Of its feature group.
    layer : HiddenLayer
    search : BuiltNetwork or None
        How the layer was found; None when it was drawn, as in an RVFL network.
    """

    name: str
    layer: HiddenLayer
    search: BuiltNetwork | None


def learn_scalings(
    rows: AnyRows,
    scaling: str,
    target_scaling: str,
    clip_inputs: bool,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
    known: BlockStatistics | None = None,
    names: Sequence[str] | None = None,
) -> tuple[ColumnScaling, ColumnScaling, NDArray[np.float64]]:
    """Scalings of the inputs and of the targets, and the inputs' means.

    They come from one pass over the rows, unless their statistics are `known`, or a checkpoint has them.

    `names` of the columns are for the error that numbers of an absurd size get.
    """
    if known is None and checkpoint:
        form = {**statistics_form("inputs", rows.n_columns), **statistics_form("targets", "q")}
        stored = checkpoint.load("statistics", form, statistics_hold)
        if stored is not None:
            known = stored_statistics("inputs", stored), stored_statistics("targets", stored)
    if known is None:
        # One for each stripe: adding them up in their order gives the same bits wherever they were taken, and with them
        # the same scaling, on which every choice of a node depends.
        blocks: list[BlockStatistics] = []
        job = Pass(rows, block_statistics, add, "reading columns", row_bytes=32 * rows.n_columns)
        for _, stripes in engine.results(job):
            blocks.extend(stripes)
        known = reduce(combined_statistics, blocks)
        if checkpoint:
            arrays = {**statistics_to_store("inputs", known[0]), **statistics_to_store("targets", known[1])}
            checkpoint.save("statistics", arrays)
    inputs, targets = known
    check_input_sizes(inputs, scaling, names)
    spread = targets.largest - targets.smallest
    tiny = (spread > 0) & (spread < LEAST)
    if tiny.any():
        raise ValueError(
            f"The target spans {float(spread[tiny].min()):.3g} only, and the squares of such differences are zero in "
            f"double precision: rescale it to at least {LEAST:g}."
        )
    return learn_scaling(inputs, scaling, clip_inputs), learn_scaling(targets, target_scaling), inputs.mean


def block_statistics(block: RowBlock) -> list[BlockStatistics]:
    """Statistics of a block's inputs and targets, as a list of one: the kernel of the scaling pass."""
    return [(column_statistics(block.inputs, block.weights), column_statistics(block.targets, block.weights))]


def combined_statistics(left: BlockStatistics, right: BlockStatistics) -> BlockStatistics:
    """Statistics of both sets of rows."""
    return left[0].combined(right[0]), left[1].combined(right[1])


def statistics_to_store(prefix: str, statistics: ColumnStatistics) -> dict[str, Any]:
    """Statistics as named arrays."""
    return {f"{prefix}_{name}": value for name, value in vars(statistics).items()}


def statistics_hold(arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether arrays of `statistics_to_store` can be statistics of anything."""
    return all(
        arrays[f"{prefix}_weight"] > 0
        and (arrays[f"{prefix}_squares"] >= 0).all()
        and (arrays[f"{prefix}_smallest"] <= arrays[f"{prefix}_largest"]).all()
        for prefix in ("inputs", "targets")
    )


def statistics_form(prefix: str, columns: int | str) -> dict[str, Form]:
    """What arrays of `statistics_to_store` look like."""
    vectors = {f"{prefix}_{field.name}": ("float64", columns) for field in fields(ColumnStatistics)}
    return {**vectors, f"{prefix}_weight": ("float64",)}


def stored_statistics(prefix: str, arrays: dict[str, NDArray[Any]]) -> ColumnStatistics:
    """Statistics from arrays of `statistics_to_store`."""
    weight, *columns = (arrays[f"{prefix}_{field.name}"] for field in fields(ColumnStatistics))
    return ColumnStatistics(float(weight), *columns)


def draw_held_out(rows: ArrayRows, fraction: float, seed: int) -> NDArray[np.intp] | None:
    """Places of held-out rows: a random share of the rows that count; None when too few to judge by."""
    xp = namespace_of(rows.inputs)
    counted = None if rows.weights is None else xp.nonzero(rows.weights)[0]
    n = rows.n_rows if counted is None else counted.shape[0]
    n_different = 0
    # The first ones nearly always tell. A device takes as long to be told what to do with few rows as with many.
    for first in (min(n, _LOOKED_AT_FIRST), n):
        inputs = rows.inputs[:first, :] if counted is None else xp.take(rows.inputs, counted[:first], axis=0)
        keys = content_keys(to_numpy(inputs) if first < n else inputs)
        n_different = namespace_of(keys).unique_values(keys).shape[0]
        if n_different >= FEWEST_TO_HOLD_OUT:
            break
    if n_different < FEWEST_TO_HOLD_OUT:
        return None
    share = min(max(1, round(fraction * n)), n - 1)
    # Drawn here, so that the same rows are held out wherever they live.
    drawn = np.random.default_rng(seed).permutation(n)[:share]
    return drawn if counted is None else to_numpy(xp.take(counted, like(drawn, counted), axis=0))


def ensemble_system(
    rows: AnyRows,
    layers: Sequence[HiddenLayer],
    target_scaling: ColumnScaling,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
    stage: str = "summing rows",
) -> EnsembleSystem:
    """G, g and y'y of the ensemble in one pass over the rows (Eq. (25) without its coefficients)."""
    # The kernel travels to other machines, and an engine cannot.
    hidden_outputs = partial(joint_outputs, layers, precision=engine.sum_dtype)

    def kernel(block: RowBlock) -> SystemSums:
        # What overflows is refused in words, below.
        with np.errstate(over="ignore", invalid="ignore"):
            return system_sums(block, hidden_outputs, target_scaling)

    part_of_fit = "sums on a device" if engine.on_device else "sums"
    sizes = tuple(map(attrgetter("n_outputs"), layers))
    L = sum(sizes)
    form: dict[str, Form] = {
        "gram": ("float64", L, L),
        "moments": ("float64", L, "q"),
        "target_square": ("float64", "q"),
        "weight": ("float64",),
        "done": ("int64",),
    }
    stored = checkpoint.load(part_of_fit, form, _sums_hold) if checkpoint else None
    done = 0 if stored is None else int(stored.pop("done"))
    total = None if stored is None else SystemSums(**{name: _where(engine, value) for name, value in stored.items()})
    width = L + 3 * max(map(len, map(attrgetter("weights"), layers)))
    job = Pass(rows, kernel, added, stage, done, row_bytes=16 * width, result_bytes=8 * L * L)
    for done, part in engine.results(job):
        # What comes from another process may be read-only, and sums are added in place.
        total = (part if engine.on_device else part.in_numpy()) if total is None else added(total, part)
        if checkpoint and checkpoint.is_due:
            checkpoint.save(part_of_fit, {**total.in_numpy()._asdict(), "done": done})
    assert total is not None
    sums = total.in_numpy()
    if checkpoint:
        checkpoint.save(part_of_fit, {**sums._asdict(), "done": done})
    if not (np.isfinite(sums.gram).all() and np.isfinite(sums.moments).all() and np.isfinite(sums.target_square).all()):
        raise ValueError(
            "The sums over the rows overflow: inputs or targets are too large for double precision as they are scaled; "
            "rescale them, or use scaling='0-1' and target_scaling='standard'."
        )
    return EnsembleSystem(
        gram=sums.gram,
        moments=sums.moments,
        target_square=sums.target_square,
        n_rows=float(sums.weight),
        sizes=sizes,
    )


def with_signs(
    system: EnsembleSystem, layers: Sequence[HiddenLayer], directions: NDArray[np.float64] | None
) -> EnsembleSystem:
    """The system with the signs that output weights must have, for an output that rises and falls along some columns.

    Parameters
    ----------
    directions : ndarray of shape (d,) or None
        Of all columns of the input.
    """
    return system if directions is None else replace(system, signs=output_signs(layers, directions))


def _sums_hold(arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether arrays can be sums over rows, and the number of stripes that they were taken of."""
    squares = arrays["gram"].diagonal(), arrays["target_square"]
    return bool(arrays["weight"] > 0 and arrays["done"] > 0 and all((values >= 0).all() for values in squares))


def _where(engine: Engine, values: NDArray[Any]) -> Array:
    """An array of this process's memory where an engine works."""
    return engine.put(values) if isinstance(engine, DeviceEngine) else values


def member_outputs(
    inputs: Array, layers: Sequence[HiddenLayer], weights: Sequence[NDArray[np.float64]], engine: Engine
) -> Array:
    """Every member's output in scaled target units, shape (M, n, q)."""
    if is_foreign(inputs) or engine.on_device:
        parts = [list(each_outputs(layers, block, betas=weights)) for block in device_blocks(inputs, layers, engine)]
        xp = namespace_of(parts[0][0])
        joined = xp.concat([xp.stack(part) for part in parts], axis=1)
        return joined if is_foreign(inputs) else to_numpy(joined)
    q = weights[0].shape[1]
    outputs = np.empty((len(layers), len(inputs), q))

    step = rows_at_once(layers, _OUTPUT_BYTES)

    def write(start: int) -> None:
        for m, output in enumerate(each_outputs(layers, inputs[start : start + step], betas=weights)):
            outputs[m, start : start + step] = output

    engine.run(write, range(0, len(inputs), step))
    return outputs


def summed_output(
    inputs: Array, layers: Sequence[HiddenLayer], weights: Sequence[NDArray[np.float64]], engine: Engine
) -> Array:
    """sum_m H_m B_m, shape (n, q): the output of an ensemble, whose weights are times a_m, in scaled target units."""
    if is_foreign(inputs) or engine.on_device:
        totals = []
        for block in device_blocks(inputs, layers, engine):
            total = sum(each_outputs(layers, block, betas=weights))
            # What came from this process's memory goes back there, block by block.
            totals.append(total if is_foreign(inputs) else to_numpy(total))
        return namespace_of(totals[0]).concat(totals, axis=0)
    if layers[0].compiled is not None:
        return CompiledTerms(list(map(attrgetter("compiled"), layers)), weights).outputs_by(engine, inputs)
    outputs = np.empty((len(inputs), weights[0].shape[1]))
    step = rows_at_once(layers, _OUTPUT_BYTES)

    def write(start: int) -> None:
        total = 0.0
        for output in each_outputs(layers, inputs[start : start + step], betas=weights):
            total = total + output
        outputs[start : start + step] = total

    engine.run(write, range(0, len(inputs), step))
    return outputs


def device_blocks(inputs: Array, layers: Sequence[HiddenLayer], engine: Engine) -> Iterator[Array]:
    """The rows in blocks on the device of an engine, or where they are."""
    if not isinstance(engine, DeviceEngine):
        engine = DeviceEngine(inputs)
    widest = max(layer.n_outputs + 3 * len(layer.weights) for layer in layers)
    step = engine.stripe_rows(inputs.shape[0], 16 * widest)
    for start in range(0, inputs.shape[0], step):
        yield engine.put(inputs[start : min(start + step, inputs.shape[0]), :], "float64")
