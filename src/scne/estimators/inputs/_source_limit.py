"""The door for a limit to the sources of a node."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from scne.fitting import check_integer
from scne.networks import SourceLimit


def source_limit(most: int | None, groups: Mapping[str, NDArray[np.intp]], n_columns: int) -> SourceLimit | None:
    """A limit for nodes on columns whose sources are these groups, and one more for columns in none of them.

    Examples
    --------
    >>> source_limit(1, {"gases": np.array([0, 2]), "weather": np.array([1])}, 4)
    SourceLimit(of_columns=(0, 1, 0, 2), most=1)
    """
    if most is None:
        return None
    check_integer("sources_per_node", most, 1)
    if not groups:
        raise ValueError(
            f"sources_per_node is {most}, but there are no groups to be the sources; pass groups, or "
            "sources_per_node=None."
        )
    for first, second in combinations(groups, 2):
        if np.intersect1d(groups[first], groups[second]).size:
            raise ValueError(
                f"sources_per_node is {most}, but groups {first!r} and {second!r} share columns, which then "
                "belong to no one source; give every column to one group, or pass sources_per_node=None."
            )
    source = np.full(n_columns, len(groups))
    for place, columns in enumerate(groups.values()):
        source[columns] = place
    return SourceLimit(tuple(source.tolist()), int(most))
