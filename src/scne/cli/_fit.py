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
    MONOTONE,
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
        typer.Option(CLASSIFY, help="Treat the target as classes; text, and true and false, always are."),
    ] = False,
    groups: Annotated[
        Path | None, typer.Option(help="TOML file: group names with their columns, or patterns such as 'gas_*'.")
    ] = None,
    out: Annotated[Path, out_option("Where to write the model.")] = Path("model.scne"),
    effort: Annotated[
        int,
        typer.Option(
            EFFORT, help="Effort, from 1 (quick) to 5 (accurate): sets networks, nodes and tuning.", min=1, max=5
        ),
    ] = 3,
    networks: Annotated[
        int | None,
        typer.Option(
            help="Number of networks, each of which sees all groups.", min=1, max=10_000, show_default=_BY_EFFORT
        ),
    ] = None,
    per_group: Annotated[bool, typer.Option("--per-group", help="One network for each group instead.")] = False,
    sources_per_node: Annotated[
        int | None,
        typer.Option(
            help="Largest number of groups whose columns one node may see, 1 or 2, for terms that are easy to read.",
            min=1,
            show_default="any number",
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            help="Largest number of hidden nodes of each network.", min=1, max=100_000, show_default=_BY_EFFORT
        ),
    ] = None,
    tuning: Annotated[
        float | None,
        typer.Option(help="Rounds of tuning after the search; 0 for none.", min=0, max=10_000, show_default=_BY_EFFORT),
    ] = None,
    validation: Annotated[float, typer.Option(help="Share of the search rows that is held out for validation.")] = 0.15,
    search_rows: Annotated[
        int, typer.Option(help="Number of rows that networks are searched on; 0 for all.", min=0, max=10**9)
    ] = 100_000,
    scaling: Annotated[
        str, typer.Option(help="'chosen ramps', ramps (networks of one kind, faster), standard, 0-1 or none.")
    ] = "chosen ramps",
    weight: Annotated[str | None, typer.Option(help="Column with the weight of each row.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            KIND,
            metavar="COLUMN=KIND",
            help="Type of a column: number, flag, category or date, as in code=category; repeatable.",
        ),
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(
            MONOTONE,
            metavar="COLUMN=DIRECTION",
            help="Along which column the prediction only rises or falls, as in income=increasing; repeatable.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Text that stands for a missing value, such as '?'; repeatable."),
    ] = None,
    drop_missing_target: DropMissingTarget = True,
    memory: Annotated[
        str, typer.Option(help="Memory that the fit may use, not counting imports, such as 512MB.")
    ] = "1GB",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            CHECKPOINT, help="Folder for progress; a fit that was killed resumes when the same command is run again."
        ),
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

    A target of text, or of true and false, is fitted as classes, and numbers as numbers; with --classify whole numbers
    are classes too.
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
    directions = _stated(monotone or (), MONOTONE, "a direction", "income=increasing")
    check_output(out, {"the data": data, "the groups file": groups, "the checkpoint": checkpoint})
    with progress_bars(passes=True, verbose=verbose):
        rows = open_rows(
            data,
            target=target if len(target) > 1 else target[0],
            groups=None if groups is None else read_groups(groups),
            weight=weight,
            ignore=ignore or (),
            kinds=_stated(kind or (), KIND, "its type", "code=category"),
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
        if classify or labels is not None:
            if directions:
                raise ValueError(f"{MONOTONE} was given, but the target holds classes; it is for numbers alone.")
            model = SCNEClassifier(base, networks="per group", trend="judged", device=device, random_state=seed)
        else:
            model = SCNERegressor(base, networks="per group", trend="judged", device=device, random_state=seed)
            model.set_params(monotone=directions or None)
        if sources_per_node is not None:
            model.set_params(sources_per_node=sources_per_node)
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


def _stated(given: Sequence[str], option: str, what: str, example: str) -> dict[str, str]:
    """Columns with what an option states of them, from texts such as ``code=category``."""
    stated: dict[str, str] = {}
    for text in given:
        # A name may hold the sign itself, what is stated of it cannot.
        column, sign, value = text.rpartition("=")
        if not sign:
            raise ValueError(f"{option} is {text!r}, but it must be a column and {what}, such as {example}.")
        stated[column] = value
    return stated


def _admissibility(model: "SCNERegressor", tuned: bool) -> str:
    held = model.admissible_nodes_
    shares = ", ".join(f"{name} {int(nodes.sum())} of {len(nodes)}" for name, nodes in held.items())
    if tuned:
        return f"Nodes still admissible on all rows after tuning: {shares}."
    return f"Nodes admissible on all rows: {shares}."
