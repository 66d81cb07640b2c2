"""What a fit on files does with its memory budget: rows of the search, threads, or a refusal before a row is read."""

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from scne.fitting._memory import FEWEST_SEARCH_ROWS, FitShape, in_flight_bytes, needed_bytes
from scne.passes import stripe_rows

if TYPE_CHECKING:
    from scne.rows import Encoder, FileRows

# The most columns that a text column becomes: 32 levels, one for the others and one for what is missing.
_TEXT_COLUMNS = 34
# Forms of encodings whose columns hold more than zeros and ones.
_GRADED = ("number", "named numbers", "date", "level means")
_ROUNDED_TO = 10e6


@dataclass(frozen=True)
class MemoryPlan:
    """How a fit keeps to its budget.

    Attributes
    ----------
    budget : float
        In bytes.
    asked : int or None
        Rows of the search that were asked for; None is all.
    most : FitShape
        With the most columns that the files may give.
    least : FitShape
        With the fewest.
    threads : int
    chooses : bool
        Whether kinds of networks are to be tried, if there is memory for it.
    """

    budget: float
    asked: int | None
    most: FitShape
    least: FitShape
    threads: int
    chooses: bool = False

    @property
    def search_rows(self) -> int:
        """Rows to draw before it is known what texts become."""
        return _fitting_rows(self.least, self._wanted(), self.budget)

    @property
    def in_flight_bytes(self) -> float:
        """Of blocks that wait or are worked on."""
        spare = self.budget - needed_bytes(self.least, self.search_rows, self.threads)
        return in_flight_bytes(self.least, self.threads) + max(0.0, spare)

    def after_some_rows(self, row_bytes: float, level_bytes: float) -> "MemoryPlan":
        """The plan once rows or levels of texts turn out to take more than was thought; raises when that cannot be."""
        if row_bytes <= self.most.row_bytes and level_bytes <= self.most.level_bytes:
            return self
        plan = replace(self, most=_with_texts(self.most, row_bytes, level_bytes))
        plan = replace(plan, least=_with_texts(self.least, row_bytes, level_bytes))
        plan.check()
        return plan

    def has_room(self, level_bytes: float) -> bool:
        """Whether levels may take so much, and the search still has all of its rows."""
        plan = replace(self, most=_with_texts(self.most, 0.0, level_bytes))
        plan = replace(plan, least=_with_texts(self.least, 0.0, level_bytes))
        fits = needed_bytes(plan.most, self._fewest(), 1) <= self.budget
        return fits and plan.search_rows == self.search_rows

    def after_learning(self, encoder: "Encoder", n_rows: int) -> "MemoryPlan":
        """The plan once columns and rows are known; raises when that cannot be."""
        graded = sum(len(encoding.names) for encoding in encoder.encodings if encoding.form in _GRADED)
        shape = replace(self.most, n_rows=n_rows, n_columns=len(encoder.names), n_graded=graded)
        plan = replace(self, most=shape, least=shape)
        plan.check()
        return plan

    def with_kinds(self, rows: int) -> "MemoryPlan":
        """The plan with several kinds of networks, if they were asked for and fit on one thread."""
        least = replace(self.least, tries_kinds=self.chooses)
        return replace(self, least=least) if needed_bytes(least, rows, 1) <= self.budget else self

    def on_threads(self, rows: int, threads: int) -> "MemoryPlan":
        """The same with as many threads as there is memory for beside so many rows of the search."""
        fitting = [n for n in range(2, threads + 1) if needed_bytes(self.least, rows, n) <= self.budget]
        return replace(self, threads=max(fitting, default=1))

    def check(self) -> None:
        """Raise when the fewest rows do not fit on one thread, with the number that would do."""
        needed = needed_bytes(self.most, self._fewest(), 1)
        if needed > self.budget:
            raise ValueError(_refusal(self.budget, needed, self.most))

    def note(self, rows: int) -> str | None:
        """A sentence on a search that had to be shortened; None when it was not."""
        wanted = self._wanted()
        if rows >= wanted:
            return None
        enough = _words(needed_bytes(self.most, wanted, 1))
        return (
            f"Networks were searched on {rows:,} rows instead of {wanted:,}, as many as the memory budget of "
            f"{_words(self.budget, exact=True)} allows; about {enough} would be enough for all of them."
        )

    def _wanted(self) -> int:
        counts = [count for count in (self.asked, self.most.n_rows) if count is not None]
        return min(counts)

    def _fewest(self) -> int:
        return min(FEWEST_SEARCH_ROWS, self._wanted())


def plan_memory(
    template: Any,
    files: "FileRows",
    n_networks: int,
    threads: int,
    precision: str,
    *,
    per_group: bool = False,
    blended: bool = False,
) -> MemoryPlan:
    """The plan of a fit on files, from their names, types and footers; raises when the budget is too small.

    Parameters
    ----------
    template : NetworkRegressor
        Its settings: nodes, rows of the search, scaling.
    threads : int
        The most to use.
    precision : str
        Of the search.
    per_group : bool
        Whether each network looks at one group.
    blended : bool
        Whether a trend is judged on held-out rows.
    """
    from scne.rows import reading_cost

    budget, asked = files.memory_budget, template.search_rows
    if asked is None:
        # All rows: text files have to be counted.
        files.count_rows()
    kinds = list(files.input_kinds().values())
    numbers = kinds.count("number") + kinds.count("flag") + kinds.count("empty")
    dates, texts = 5 * kinds.count("date"), kinds.count("category")
    cost = reading_cost(files, stripe_rows(files.n_rows or 1 << 40))
    network = template._member_plan()
    settings = getattr(network, "search", None)
    n_columns = numbers + dates + _TEXT_COLUMNS * texts
    most = FitShape(
        n_rows=files.n_rows,
        n_columns=n_columns,
        n_graded=numbers + dates,
        n_targets=len(files.target_names),
        row_bytes=8.0 * (len(files.schema.names) - texts) + cost.text_row,
        footer_bytes=cost.footer,
        piece_bytes=cost.piece,
        level_bytes=cost.levels,
        n_networks=n_networks,
        n_nodes=network.largest_layer(n_columns),
        n_candidates=0 if settings is None else settings.n_candidates,
        pool_rows=getattr(network, "pool_rows", 1),
        ramps=None if "ramps" in template.scaling else 0,
        tuned=network.builds_alone,
        blended=blended,
        double=precision == "float64",
        held_out=template.validation_fraction or 0.0,
        widest=max(map(len, files.groups.values())) / len(files.input_names) if per_group else None,
    )
    least = replace(most, n_columns=numbers + dates + texts)
    plan = MemoryPlan(budget, asked, most, least, 1, template.scaling == "chosen ramps")
    if needed_bytes(most, plan._wanted(), 1) > budget and most.n_nodes > most.n_features(plan._wanted()):
        # More nodes than features: to compute outputs again takes less than to keep them.
        plan = replace(plan, most=replace(most, stored_basis=False), least=replace(least, stored_basis=False))
    plan.check()
    return plan.on_threads(plan.search_rows, threads)


def _with_texts(shape: FitShape, row_bytes: float, level_bytes: float) -> FitShape:
    return replace(shape, row_bytes=max(shape.row_bytes, row_bytes), level_bytes=max(shape.level_bytes, level_bytes))


def _fitting_rows(shape: FitShape, wanted: int, budget: float) -> int:
    """As many of the wanted rows as fit the budget, the fewest at least.

    They are planned for one thread: the rows, and with them the model, must not depend on how many there are.
    """
    if needed_bytes(shape, wanted, 1) <= budget:
        return wanted
    low, high = min(FEWEST_SEARCH_ROWS, wanted), wanted
    while high - low > 1:
        middle = (low + high) // 2
        fits = needed_bytes(shape, middle, 1) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return low


def _refusal(budget: float, needed: float, shape: FitShape) -> str:
    return (
        f"memory is {_words(budget, exact=True)!r}, but a fit on {shape.n_columns:,} columns with "
        f"{shape.n_networks * shape.n_nodes:,} nodes in all networks together needs {_words(needed)}; allow that much "
        "(--memory), or give fewer columns (groups, ignore) or nodes (max_hidden)."
    )


def _words(n_bytes: float, exact: bool = False) -> str:
    """A number of bytes as `open_rows` takes it; rounded up unless exact.

    Examples
    --------
    >>> _words(1.234e9), _words(3e8, exact=True)
    ('1240MB', '300MB')
    """
    if exact:
        return f"{n_bytes / 1e6:g}MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:g}GB"
    return f"{ceil(n_bytes / _ROUNDED_TO) * 10:d}MB"
