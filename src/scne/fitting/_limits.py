"""How large parameters may be: what no machine could finish, or hold, is refused before any work starts."""

import os
from collections.abc import Sequence

# The largest value of each parameter. All lie far beyond what helps a fit; most of the work, and the Gram matrix,
# grows with the square of the nodes.
LARGEST = {
    "batch_size": 100_000,
    "max_hidden": 100_000,
    "max_iter": 1_000_000,
    "max_rows": 1_000_000_000,
    "n": 100_000,
    "n_candidates": 100_000,
    "n_estimators": 10_000,
    "n_hidden": 100_000,
    "n_iter_no_change": 1_000_000_000,
    "n_jobs": 1_024,
    "n_ramps": 10_000,
    "n_repeats": 10_000,
    "pool_rows": 1_000_000_000,
    "search_rows": 1_000_000_000,
    "tuning_epochs": 10_000,
}
# The most values of a list of scopes or contractions.
MOST_VALUES = 1_000
# Scopes beyond it make steps of every node, and ridges leave nothing of one.
LARGEST_SCOPE, LARGEST_RIDGE = 1e9, 1e100


def check_gram_fits(sizes: Sequence[int], matrix_free: bool = False) -> None:
    """Refuse networks whose Gram matrix the machine cannot hold.

    Parameters
    ----------
    sizes : sequence of int
        The most outputs of each network's hidden layer.
    matrix_free : bool
        Whether only the diagonal blocks are formed.

    Examples
    --------
    >>> check_gram_fits([100] * 6)
    >>> check_gram_fits([100_000] * 5_000)
    Traceback (most recent call last):
    ...
    ValueError: 5,000 network(s) of up to 100,000 nodes have a Gram matrix of ... GB, but this machine has ... GB ...
    """
    squares = sum(size**2 for size in sizes) if matrix_free else sum(sizes) ** 2
    memory = machine_bytes()
    # The matrix itself, and the factor that solves for the weights.
    if memory is None or 16 * squares <= memory:
        return
    most = int((memory / 16) ** 0.5)
    raise ValueError(
        f"{len(sizes):,} network(s) of up to {max(sizes):,} nodes have a Gram matrix of {8 * squares / 1e9:,.0f} GB, "
        f"but this machine has {memory / 1e9:,.0f} GB of memory: at most {most:,} nodes in all networks would fit; "
        "use fewer networks (n_estimators), or smaller ones (max_hidden, n_hidden)."
    )


def check_pool_fits(n_candidates: int, budget: float) -> None:
    """Refuse pools whose candidates' products with each other, from which a batch of nodes is taken, are too many."""
    needed = 16.0 * n_candidates**2
    if needed > budget:
        raise ValueError(
            f"n_candidates is {n_candidates:,}, and with batch_size above 1 the products of all pairs of them take "
            f"{needed / 1e9:.2g} GB, but memory_budget is {budget / 1e9:.2g} GB: use at most "
            f"{int((budget / 16) ** 0.5):,} candidates, or batch_size=1."
        )


def machine_bytes() -> int | None:
    """Memory of the machine; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
