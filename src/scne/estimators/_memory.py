"""What a fit on files needs, told before a row is read."""

from scne.estimators._parameters import check_bytes


def check_gram_memory(memory_budget: object, n_nodes: int, n_threads: int) -> None:
    """Refuse a Gram system that the budget cannot hold.

    G itself, the sums of the blocks that are under way on every thread, and the copies of a solver: a few matrices of
    L x L float64 numbers, whatever the number of rows.
    """
    budget = check_bytes("memory_budget", memory_budget)
    needed = 8.0 * n_nodes**2 * (2 * n_threads + 4)
    if needed > budget:
        most = int((budget / (8.0 * (2 * n_threads + 4))) ** 0.5)
        raise ValueError(
            f"memory_budget is {memory_budget!r}, but the Gram system of {n_nodes:,} nodes needs {needed / 1e9:.2g} "
            f"GB; allow that much, or at most {most:,} nodes in all networks together (max_hidden times the groups)."
        )
