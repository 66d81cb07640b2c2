"""The compiled kernels, if they were built when the package was installed."""

import ctypes
import hashlib
import os
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent


class Kernels(NamedTuple):
    """The library, and how many numbers of single precision a vector of this processor has."""

    library: ctypes.CDLL
    width: int


@cache
def compiled_kernels() -> Kernels | None:
    """The kernels, loaded once; None where there are none, or the variable SCNE_COMPILED is "0".

    They hold the checksum of their sources: after a change of these an editable installation has kernels of before.
    """
    path = _FOLDER / "kernels.so"
    if os.environ.get("SCNE_COMPILED") == "0" or not path.exists():
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        # Made for another processor or C library.
        return None
    sources = sorted(_FOLDER.glob("*.[ch]"))
    wanted = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if (ctypes.c_char * 65).in_dll(library, "scne_source").value.decode() != wanted:
        warnings.warn(
            f"{path.name} was compiled from other sources than those beside it and is not used; install scne again "
            "(pip install -e .) to compile it.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    for name, n_arguments in (("scne_width", 0), ("scne_space", 5), ("scne_layer_space", 4)):
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * n_arguments
    for name in ("scne_take_steps", "scne_hidden_outputs"):
        function = getattr(library, name)
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_int64]
    return Kernels(library, int(library.scne_width()))
