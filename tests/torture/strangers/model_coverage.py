"""Model files changed by atheris, which prefers changes that reach new lines of `scne.models`; by hand only.

    pip install atheris
    python -m tests.torture.strangers.model_coverage -max_total_time=600 -seed=1 [CORPUS FOLDER]

What it changes is the JSON document alone, signed with a valid checksum afterwards, so that it gets past the container.
Options are those of libFuzzer; a file that escapes is written as ``crash-*``.
"""

import json
import sys
import warnings

try:
    import atheris
except ImportError:
    # Collected by the tests, where it is not installed.
    atheris = None

if atheris is not None and __name__ == "__main__":
    # Before anything else imports them.
    rows = [f"scne.rows.{name}" for name in ("_encoder", "_encodings", "_column_encodings", "_level_encodings")]
    with atheris.instrument_imports(include=["scne.models", *rows]):
        import scne.models
else:
    import scne.models

from .container import Parts, put_together, taken_apart
from .corpus import examples, folder


def try_bytes(data: bytes) -> None:
    """Load the model whose document these bytes are; the first one says to which example's tensors it belongs."""
    if not data:
        return
    tensors = _parts(data[0] % len(examples())).tensors
    try:
        document = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    path = folder() / "covered.scne"
    try:
        path.write_bytes(put_together(Parts(document, tensors)))
    except (ValueError, RecursionError):
        return
    try:
        model = scne.models.load_model(path)
    except (ValueError, OSError):
        return
    repr(model)


def _parts(place: int) -> Parts:
    if place not in _TAKEN:
        _TAKEN[place] = taken_apart(examples()[place].data)
    return _TAKEN[place]


_TAKEN: dict[int, Parts] = {}


def main() -> None:
    warnings.simplefilter("ignore")
    corpus = folder() / "documents"
    corpus.mkdir()
    for place in range(len(examples())):
        document = json.dumps(_parts(place).document, separators=(",", ":"))
        (corpus / f"{place}.bin").write_bytes(bytes([place]) + document.encode())
    atheris.Setup([*sys.argv, str(corpus), "-max_len=20000"], try_bytes)
    atheris.Fuzz()


if __name__ == "__main__":
    if atheris is None:
        raise SystemExit("atheris is not installed: pip install atheris")
    main()
