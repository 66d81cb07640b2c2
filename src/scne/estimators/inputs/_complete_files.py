"""Rows of files that have their targets: what fits and scores use of them, and the warning for the rest."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from scne.passes import Cluster, ClusterRows, check_client, file_partitions
from scne.rows import counted, listed, warn_user

if TYPE_CHECKING:
    from distributed import Client

    from scne.rows import FileRows


def complete_files(files: "FileRows", client: "Client | None" = None) -> "FileRows":
    """The rows without those that lack a target, of whose number a warning tells; all where these are to be refused.

    It takes a pass over the targets, by the workers of a cluster where there is one.
    """
    if not files.drop_missing_target or not files.target_names or files.n_dropped or files.labels is not None:
        # Rows whose labels are read as indicators were complete before they became so.
        return files
    cluster = None if client is None else check_client(client)
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
    n_rows = files.count_rows()
    read: Callable[..., Iterator[Any]] = lambda step, start, stop: files.target_counts(step, start, stop)  # noqa: E731
    rows = ClusterRows(n_rows, len(files.target_names), file_partitions(n_rows), read, cluster)
    for _, counts in rows.run(list, rows.partitions, "reading targets"):
        yield from counts
