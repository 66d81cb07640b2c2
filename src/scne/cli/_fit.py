"""`scne fit`: open the files, fit, write the model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scne.cli._dask import dask_client
from scne.cli._signals import Stopped
from scne.estimators import ModelSummary, SCNERegressor, SCNRegressor, describe_model, save_model
from scne.fitting import Checkpoint
from scne.passes import ClusterError
from scne.rows import open_rows, read_groups


def run_fit(
    data: Path,
    *,
    targets: Sequence[str],
    groups: Path | None,
    out: Path,
    networks: int | None,
    nodes: int,
    tuning: float,
    validation: float,
    search_rows: int | None,
    scaling: str,
    weight: str | None,
    ignore: Sequence[str],
    kinds: Sequence[str],
    missing: Sequence[str],
    memory: str,
    checkpoint: Path | None,
    dask: str | None,
    device: str | None,
    seed: int,
) -> tuple[ModelSummary, list[str], str]:
    """Fit and save; what was built, sentences on what the user should know of it, and its summary.

    The checkpoint is emptied after the model file is in place, so that a kill at any moment loses nothing.
    """
    rows = open_rows(
        data,
        target=list(targets) if len(targets) > 1 else targets[0],
        groups=None if groups is None else read_groups(groups),
        weight=weight,
        ignore=ignore,
        kinds=_kinds(kinds),
        missing=missing,
        memory=memory,
    )
    base = SCNRegressor.tuned(
        max_hidden=nodes,
        tuning_epochs=tuning,
        scaling=scaling,
        validation_fraction=validation,
        search_rows=search_rows,
    )
    if networks is None:
        model = SCNERegressor(base, networks="per group", trend="judged", device=device, random_state=seed)
    else:
        model = SCNERegressor(
            base, networks="across", n_estimators=networks, trend="judged", device=device, random_state=seed
        )
    with _progress_kept(checkpoint) as kept, dask_client(dask) as client:
        model.fit(rows, checkpoint=kept, client=client)
        save_model(model, out)
        with _finished(out):
            if kept is not None:
                kept.clear()
    guessed = [note for note in (rows.guessed_groups, model.memory_note_) if note is not None]
    return describe_model(out), [*guessed, _admissibility(model, tuning > 0)], model.summary()


@contextmanager
def _progress_kept(folder: Path | None) -> Iterator[Checkpoint | None]:
    """The checkpoint in a folder; who stops the fit, or loses its cluster, is told what is kept of it."""
    try:
        if folder is None:
            yield None
        else:
            with Checkpoint(folder) as kept:
                yield kept
    except (Stopped, ClusterError) as stopped:
        if not hasattr(stopped, "__notes__"):
            stopped.add_note(
                "No progress was kept; with --checkpoint FOLDER a fit keeps it, and resumes."
                if folder is None
                else "There was no progress to keep yet."
            )
        raise


@contextmanager
def _finished(out: Path) -> Iterator[None]:
    """Who stops a fit after its model was written is told so."""
    try:
        yield
    except Stopped as stopped:
        stopped.add_note(f"The model was written to {out}.")
        raise


def _kinds(stated: Sequence[str]) -> dict[str, str]:
    """Columns with their kinds, from texts such as ``code=category``."""
    kinds: dict[str, str] = {}
    for text in stated:
        # A name may hold the sign itself, a kind cannot.
        column, sign, kind = text.rpartition("=")
        if not sign:
            raise ValueError(f"--kind is {text!r}, but it must name a column and what it is, such as code=category.")
        kinds[column] = kind
    return kinds


def _admissibility(model: SCNERegressor, tuned: bool) -> str:
    held = model.admissible_nodes_
    shares = ", ".join(f"{name} {int(nodes.sum())} of {len(nodes)}" for name, nodes in held.items())
    if tuned:
        return f"Nodes that, after tuning, satisfy on all rows the inequality that admitted them: {shares}."
    return f"Nodes that the sample admitted and that satisfy their inequality on all rows: {shares}."
