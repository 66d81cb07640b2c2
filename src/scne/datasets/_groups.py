"""The columns of the paper's two data sets and the groups it makes of them (Tables 2 and 3)."""

from collections.abc import Mapping
from types import MappingProxyType

AVERAGES = tuple(f"timbre_avg_{number}" for number in range(1, 13))
COVARIANCES = tuple(f"timbre_cov_{number}" for number in range(1, 79))

#: Table 3: zero-based columns of each group of Year. The 78 covariances are cut into six groups of 13.
YEAR_GROUPS: Mapping[str, range] = MappingProxyType(
    {"TA": range(12)} | {f"TC-{letter}": range(12 + 13 * i, 25 + 13 * i) for i, letter in enumerate("abcdef")}
)

#: Table 2: zero-based columns of each group of Twitter, seven weeks of each quantity. The paper prints [56,63] for NA;
#: column 56 (counted from one) is the last of AT, and the group is [57,63].
TWITTER_GROUPS: Mapping[str, range] = MappingProxyType(
    {
        name: range(7 * i, 7 * i + 7)
        for i, name in enumerate(("NCD", "AI", "AS(NA)", "BL", "NAC", "AS(NAC)", "CS", "AT", "NA", "ADL", "NAD"))
    }
)

YEAR_FEATURES = (*AVERAGES, *COVARIANCES)
TWITTER_FEATURES = tuple(f"{name}_{week}" for name in TWITTER_GROUPS for week in range(7))


def named(groups: Mapping[str, range], features: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The same groups by the names of their columns."""
    return {name: tuple(features[column] for column in columns) for name, columns in groups.items()}
