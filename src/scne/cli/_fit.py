"""`scne fit`: open the files, fit, write the model."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scne.cli._options import (
    CHECKPOINT,
    CLASSIFY,
    DASK,
    EFFORT,
    KIND,
    RAY,
    SPARK,
    TARGET,
    Data,
    Device,
    DropMissingTarget,
    FitVerbose,
    Json,
    Seed,
    out_option,
)
from scne.cli._signals import Stopped

if TYPE_CHECKING:
    from scne.cli._clusters import ClusterOptions
    from scne.estimators import SCNEClassifier, SCNERegressor
    from scne.fitting import Checkpoint
    from scne.rows import FileRows

_BY_EFFORT = f"by {EFFORT}"


def fit_command(
    data: Data,
    target: Annotated[list[str], typer.Option(TARGET, help="Column to predict; may be given several times.")],
    classify: Annotated[
        bool,
        typer.Option(
            CLASSIFY, help="The target holds classes; so it is in any case where it holds text, or true and false."
        ),
    ] = False,
    groups: Annotated[
        Path | None, typer.Option(help="TOML file: group names with their columns, or patterns such as 'gas_*'.")
    ] = None,
    out: Annotated[Path, out_option("Where to write the model.")] = Path("model.scne"),
    effort: Annotated[
        int, typer.Option(EFFORT, help="How much to do, from 1 to 5: sets networks, nodes and tuning.", min=1, max=5)
    ] = 3,
    networks: Annotated[
        int | None,
        typer.Option(help="Networks, each of which looks at all groups.", min=1, max=10_000, show_default=_BY_EFFORT),
    ] = None,
    per_group: Annotated[bool, typer.Option("--per-group", help="Instead, one network for each group.")] = False,
    nodes: Annotated[
        int | None,
        typer.Option(help="The most hidden nodes of each network.", min=1, max=100_000, show_default=_BY_EFFORT),
    ] = None,
    tuning: Annotated[
        float | None,
        typer.Option(help="Rounds of tuning after the search; 0 is none.", min=0, max=10_000, show_default=_BY_EFFORT),
    ] = None,
    validation: Annotated[
        float, typer.Option(help="Share of the searched rows that are held out, to choose and to measure errors on.")
    ] = 0.15,
    search_rows: Annotated[
        int, typer.Option(help="Rows on which networks are searched; 0 is all.", min=0, max=10**9)
    ] = 100_000,
    scaling: Annotated[
        str, typer.Option(help="'chosen ramps', ramps (networks of one kind, in less time), standard, 0-1 or none.")
    ] = "chosen ramps",
    weight: Annotated[str | None, typer.Option(help="Column with the weight of each row.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            KIND,
            metavar="COLUMN=KIND",
            help="What a column is: number, flag, category or date, as in code=category; repeatable.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Text that stands for a missing value, as '?'; repeatable."),
    ] = None,
    drop_missing_target: DropMissingTarget = True,
    memory: Annotated[str, typer.Option(help="Memory that the fit may take beyond imports, such as 512MB.")] = "1GB",
    checkpoint: Annotated[
        Path | None,
        typer.Option(CHECKPOINT, help="Folder for progress; after a kill the same command resumes from it."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            DASK, metavar="ADDRESS", help="Dask scheduler to fit on, such as tcp://host:8786; 'local' starts one."
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            SPARK, metavar="URL", help="Spark master to fit on, such as spark://host:7077, yarn or 'local[2]'."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(RAY, metavar="ADDRESS", help="Ray cluster to fit on, such as host:6379; 'local' starts one."),
    ] = None,
    device: Device = None,
    seed: Seed = 0,
    json_output: Json = False,
    verbose: FitVerbose = False,
) -> None:
    """Fit an ensemble to files, reading them as a stream, and write the model.

    A target of numbers is fitted as such, one of text, or of true and false, as classes; --classify takes whole numbers
    for classes too.
    """
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._clusters import ClusterOptions
    from scne.cli._console import print_json
    from scne.cli._fit_result import FitResult, fit_facts, print_fit
    from scne.cli._progress import progress_bars
    from scne.disk import check_output
    from scne.estimators import (
        SCNEClassifier,
        SCNERegressor,
        SCNRegressor,
        describe_model,
        networks_of,
    )
    from scne.rows import open_rows, read_groups

    started = time.perf_counter()
    check_output(out, {"the data": data, "the groups file": groups, "the checkpoint": checkpoint})
    with progress_bars(passes=True, verbose=verbose):
        rows = open_rows(
            data,
            target=target if len(target) > 1 else target[0],
            groups=None if groups is None else read_groups(groups),
            weight=weight,
            ignore=ignore or (),
            kinds=_kinds(kind or ()),
            missing=missing or (),
            memory=memory,
            drop_missing_target=drop_missing_target,
        )
        asked = {"max_hidden": nodes, "tuning_epochs": tuning}
        base = SCNRegressor.tuned(
            effort,
            **{name: value for name, value in asked.items() if value is not None},
            scaling=scaling,
            validation_fraction=validation,
            search_rows=search_rows or None,
        )
        labels = _labels_note(rows, classify)
        ensemble = SCNEClassifier if classify or labels is not None else SCNERegressor
        model = ensemble(base, networks="per group", trend="judged", device=device, random_state=seed)
        if not per_group:
            model.set_params(networks="across", n_estimators=networks or networks_of(effort))
        _fit_and_save(model, rows, out, checkpoint, ClusterOptions(dask, spark, ray))
        seconds = time.perf_counter() - started
        regressor = model.regressor_ if isinstance(model, SCNEClassifier) else model
        with _model_kept(out):
            # As the file has it, which holds no sums.
            described = replace(describe_model(model), n_bytes=out.stat().st_size, has_system=False)
            paragraph = model.summary()
    notes = {"target": labels, "groups": rows.guessed_groups, "memory": regressor.memory_note_}
    result = FitResult(
        data,
        out,
        described,
        paragraph,
        regressor.fitted_,
        rows.n_rows,
        seconds,
        {label: note for label, note in notes.items() if note is not None},
        [_admissibility(regressor, base.tuning_epochs > 0)],
        model.held_out_scores_ if isinstance(model, SCNEClassifier) else None,
    )
    if json_output:
        print_json(fit_facts(result))
    else:
        print_fit(result, verbose)


def _labels_note(rows: "FileRows", stated: bool) -> str | None:
    """Why the target is taken for classes although nobody stated it, as a sentence; None where it is not."""
    if len(rows.target_names) > 1:
        if stated:
            raise ValueError(
                f"{CLASSIFY} was given with {len(rows.target_names)} targets, but classes are those of one column; "
                f"give one {TARGET}."
            )
        return None
    (name,) = rows.target_names
    type_ = rows.schema.field(name).type
    if stated or str(type_) not in ("string", "bool"):
        return None
    held = "text" if str(type_) == "string" else "true and false"
    return f"The target {name!r} holds {held}, so its values are classes, as with {CLASSIFY}."


def _fit_and_save(
    model: "SCNERegressor | SCNEClassifier",
    rows: "FileRows",
    out: Path,
    checkpoint: Path | None,
    cluster: "ClusterOptions",
) -> None:
    """Fit and write; the checkpoint is emptied once the file is there, so that a kill at any moment loses nothing."""
    from scne.cli._clusters import cluster_client
    from scne.estimators import save_model

    with _progress_kept(checkpoint) as progress, cluster_client(cluster) as client:
        model.fit(rows, checkpoint=progress, client=client)
        save_model(model, out)
        with _model_kept(out):
            if progress is not None:
                progress.clear()


@contextmanager
def _model_kept(out: Path) -> "Iterator[None]":
    """Who stops the command after the model was written is told so."""
    try:
        yield
    except Stopped as stopped:
        stopped.add_note(f"The model was written to {out}.")
        raise


@contextmanager
def _progress_kept(folder: Path | None) -> "Iterator[Checkpoint | None]":
    """The checkpoint in a folder; who stops the fit, or loses its cluster, is told what is kept of it."""
    from scne.fitting import Checkpoint
    from scne.passes import ClusterError

    try:
        if folder is None:
            yield None
        else:
            with Checkpoint(folder) as progress:
                yield progress
    except (Stopped, ClusterError) as stopped:
        if not hasattr(stopped, "__notes__"):
            stopped.add_note(
                f"No progress was kept; with {CHECKPOINT} FOLDER a fit keeps it, and resumes."
                if folder is None
                else "There was no progress to keep yet."
            )
        raise


def _kinds(stated: Sequence[str]) -> dict[str, str]:
    """Columns with their kinds, from texts such as ``code=category``."""
    kinds: dict[str, str] = {}
    for text in stated:
        # A name may hold the sign itself, a kind cannot.
        column, sign, kind = text.rpartition("=")
        if not sign:
            raise ValueError(f"{KIND} is {text!r}, but it must name a column and what it is, such as code=category.")
        kinds[column] = kind
    return kinds


def _admissibility(model: "SCNERegressor", tuned: bool) -> str:
    held = model.admissible_nodes_
    shares = ", ".join(f"{name} {int(nodes.sum())} of {len(nodes)}" for name, nodes in held.items())
    if tuned:
        return f"Nodes still admissible on all rows after tuning: {shares}."
    return f"Nodes admissible on all rows: {shares}."
