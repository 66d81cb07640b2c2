"""Rows made up to look like Buzz prediction on Twitter: one block from one seed.

A topic has a popularity, a trend, now and then a burst, and a share of authors who are new to it. The discussions of
seven steps are drawn from that, everything else in the row is counted from them as the real columns are (burstiness is
created by active discussions, discussion length contributions by discussions, and so on), and the target is the mean of
the two steps that follow. Medians, quartiles and largest values of the counts follow the statistics published with the
data set.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_STEPS = 7
# The logarithm of a topic's discussions per step is MEDIAN + SPREAD z - BEND max(z, 0)^2 for a normal z: quartiles at
# a sixth and the sixfold of the median, but a largest value near 80,000 among half a million.
MEDIAN = np.log(22.0)
SPREAD = 2.45
BEND = 0.25
# Discussions grew over the time observed: the last step has 1.6 times those of the first.
GROWTH = np.linspace(0.0, np.log(1.6), N_STEPS)
SILENT = 0.02  # share of steps without any discussion, apart from topics that are small
BURSTS = 0.06  # share of topics with a burst
CREATED = 0.997  # share of active discussions that were created in the same step
# All authors and all contributions on the network in one step.
ALL_AUTHORS = 600_000.0
ALL_CONTRIBUTIONS = 1_400_000.0


def twitter_like_block(n_rows: int, seed: np.random.SeedSequence) -> tuple[Array, Array]:
    """Data (n, 77) in the order of Table 2 and targets (n,) of a block of rows."""
    rng = np.random.default_rng(seed)
    popularity = rng.normal(size=n_rows)
    level = MEDIAN + SPREAD * popularity - BEND * np.maximum(popularity, 0.0) ** 2
    trend = 0.08 * rng.normal(size=n_rows)
    newcomers = rng.beta(6.0, 4.5, size=n_rows)
    course, burst = _course(level, trend, rng)
    active = rng.poisson(np.exp(course)) * (rng.random(course.shape) >= SILENT)
    columns = _columns(active, newcomers, rng)
    return columns, _target(course[:, -1], trend, newcomers, burst, rng)


def _course(level: Array, trend: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Logarithm of the expected discussions of each step, shape (n, 7), and how much of the last step is a burst."""
    n_rows = len(level)
    steps = np.arange(N_STEPS)
    wander = np.empty((n_rows, N_STEPS))
    wander[:, 0] = 0.2 * rng.normal(size=n_rows)
    for step in steps[1:]:
        wander[:, step] = 0.85 * wander[:, step - 1] + 0.1 * rng.normal(size=n_rows)
    begins = np.where(rng.random(n_rows) < BURSTS, rng.integers(0, N_STEPS, size=n_rows), N_STEPS)
    height = rng.gamma(2.0, 0.4, size=n_rows)
    age = steps - begins[:, None]
    burst = np.where(age >= 0, height[:, None] * 0.6 ** np.maximum(age, 0), 0.0)
    return level[:, None] + trend[:, None] * (steps - 3) + GROWTH + wander + burst, burst[:, -1]


def _columns(active: NDArray[np.int64], newcomers: Array, rng: np.random.Generator) -> Array:
    """The eleven groups of seven columns, from the active discussions (NAD) of shape (n, 7)."""
    n_rows = len(active)
    # Replies per discussion: few for most topics, hundreds for some.
    replies = np.exp(-3.2 + 1.2 * rng.normal(size=(n_rows, 1)) + 0.3 * rng.normal(size=active.shape))
    answers = rng.poisson(active * np.minimum(replies, 300.0))
    contributions = active + answers
    created = rng.binomial(active, CREATED)
    loyal = rng.beta(12.0, 1.8, size=(n_rows, 1))
    authors = np.maximum(rng.binomial(contributions, loyal), contributions > 0)
    new_authors = rng.binomial(authors, np.clip(newcomers[:, None] + 0.03 * rng.normal(size=active.shape), 0.0, 1.0))
    meetings = active + rng.binomial(answers, 0.7)
    repeated = rng.binomial(answers, 0.05)
    groups = (
        created,
        new_authors,
        authors / ALL_AUTHORS,
        _ratio(created, active),
        contributions,
        contributions / ALL_CONTRIBUTIONS,
        _ratio(contributions - repeated, contributions),
        _ratio(meetings, active),
        authors,
        _ratio(contributions, active),
        active,
    )
    columns = np.hstack([np.asarray(group, dtype=np.float64) for group in groups])
    # Six decimals, as in the file.
    return columns.round(6)


def _ratio(part: np.ndarray, whole: np.ndarray) -> Array:
    """Zero where there is nothing to divide by, as in the file."""
    ratio: Array = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    return ratio


def _target(last: Array, trend: Array, newcomers: Array, burst: Array, rng: np.random.Generator) -> Array:
    """Mean discussions of the two steps that follow.

    Not linear in the columns: a trend levels off, a burst fades, and both work harder on a topic with many newcomers.
    """
    fresh = newcomers - 6.0 / 10.5
    change = 0.5 * np.tanh(8.0 * trend) * (1.0 + 2.0 * fresh) - 0.6 * burst + 0.6 * fresh - 0.15
    steps = [rng.poisson(np.exp(last + change + 0.15 * rng.normal(size=len(last)))) for _ in range(2)]
    means: Array = np.mean(steps, axis=0, dtype=np.float64)
    return means
