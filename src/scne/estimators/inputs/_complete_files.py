"""Rows of files that have their targets: what fits and scores use of them, and the warning for the rest."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scne.passes import Cluster, cluster_of, counted_rows
from scne.rows import counted, listed, warn_user

if TYPE_CHECKING:
    from scne.rows import FileRows


def complete_files(files: "FileRows", client: Any = None) -> "FileRows":
    """The rows without those that lack a target, of whose number a warning tells; all where these are to be refused.

    It takes a pass over the targets, by the workers of a cluster where there is one.
    """
    if not files.drop_missing_target or not files.target_names or files.n_dropped or files.labels is not None:
        # Rows whose labels are read as indicators were complete before they became so.
        return files
    cluster = cluster_of(client)
    complete = files.complete_rows(None if cluster is None else _counted_by(cluster, files))
    if complete.n_dropped:
        targets = listed(map(repr, files.target_names))
        warn_user(
            f"{_share(complete)} of {files.path} have no value in the target {targets} and are left out; "
            "drop_missing_target=False (--no-drop-missing-target) refuses them instead."
        )
    return complete


def _share(complete: "FileRows") -> str:
    total = complete.n_dropped + complete.count_rows()
    return f"{complete.n_dropped:,} of {counted(total, 'row')} ({complete.n_dropped / total:.2%})"


def _counted_by(cluster: Cluster, files: "FileRows") -> Iterator[Any]:
    rows = counted_rows(files, cluster)
    for _, counts in rows.run(list, rows.partitions, "reading targets"):
        yield from counts
