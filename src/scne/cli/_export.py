"""`scne export`: a model in a form that needs no scne, and no Python."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scne.cli._options import INTERVAL, NAME, SINGLE, TO, Json, out_option


class Form(StrEnum):
    """What a model can be written as."""

    onnx = "onnx"
    c = "c"
    python = "python"


def export_command(
    model: Annotated[Path, typer.Argument(help="A model that `scne fit` or `save` wrote.")],
    to: Annotated[Form, typer.Option(TO, help="An ONNX graph, a C99 header, or a Python file without imports.")],
    out: Annotated[Path, out_option("File to write: usually .onnx, .h or .py.")],
    name: Annotated[
        str | None, typer.Option(NAME, help="For C: prefix of the names in the header (default: scne_model).")
    ] = None,
    single: Annotated[bool, typer.Option(SINGLE, help="For ONNX and C: numbers in single precision.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(INTERVAL, metavar="SHARE", help="For ONNX: also output prediction intervals at this level."),
    ] = None,
    json_output: Json = False,
) -> None:
    """Write a model as ONNX, C or Python source."""
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._tables import print_facts
    from scne.disk import check_output
    from scne.estimators import load_model

    _refuse_unused(to, name, single, interval)
    check_output(out, {"the model": model})
    fitted = load_model(model)
    dtype = "float32" if single else "float64"
    try:
        if to is Form.onnx:
            if hasattr(fitted, "classes_"):
                refuse_interval(interval, fitted)
            fitted.export("onnx", out, dtype=dtype, interval=interval)
        elif to is Form.c:
            fitted.export("c", out, name=name or "scne_model", dtype=dtype)
        else:
            fitted.export("python", out)
    except ImportError as error:
        # A package that is not there is for the user to install: a sentence, not a traceback.
        raise ValueError(str(error)) from error
    print_facts({"model": str(model), "form": str(to), "file": str(out), "bytes": out.stat().st_size}, json_output)


def refuse_interval(interval: float | None, model: object) -> None:
    """Refuse an interval of a classifier."""
    if interval is not None:
        raise ValueError(
            f"{INTERVAL} is {interval!r}, but the model is a {type(model).__name__}, which gives probabilities and no "
            "intervals; leave it out."
        )


def _refuse_unused(to: Form, name: str | None, single: bool, interval: float | None) -> None:
    if name is not None and to is not Form.c:
        raise ValueError(f"{NAME} is {name!r}, but it is for {TO} c only; leave it out with {TO} {to}.")
    if single and to is Form.python:
        raise ValueError(f"{SINGLE} was given, but Python has double precision only; leave it out with {TO} python.")
    if interval is not None and to is not Form.onnx:
        raise ValueError(f"{INTERVAL} is {interval!r}, but it is for {TO} onnx only; leave it out with {TO} {to}.")
