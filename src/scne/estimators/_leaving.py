"""Saving and exporting fitted models: a file, or source or a graph that runs without scne."""

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from scne.models import ExportPlan

# What a model is exported as, and the options that this takes.
FORMS = {"onnx": ("dtype", "interval"), "c": ("dtype", "name"), "python": ()}


class Leaving:
    """A fitted model that can be saved and exported."""

    def save(self, path: str | os.PathLike[str], *, with_system: bool = False) -> None:
        """Save this fitted model as one file of plain tensors; `scne.load` gives it back with the same predictions.

        Parameters
        ----------
        path : str or path-like
            Usually ends in ``.scne``; an existing file is replaced, completely or not at all.
        with_system : bool, default=False
            Of an ensemble also save the Gram matrix of all L nodes, 8 L^2 bytes, so that the loaded one can be
            `reweighted`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import scne
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = scne.RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/sine.scne")
        ...     again = scne.load(f"{folder}/sine.scne")
        >>> np.array_equal(again.predict(X), model.predict(X))
        True
        """
        from scne.estimators._model_files import save_model

        check_is_fitted(self)
        save_model(self, path, with_system=with_system)

    def export(self, form: str, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """This fitted model in a form that runs without scne: an ONNX graph, a C header or a Python file.

        Parameters
        ----------
        form : {"onnx", "c", "python"}
            "onnx" is for runtimes of ONNX (``pip install scne[onnx]``): everything that `predict` does is in the graph,
            in double precision. "c" is one C99 header for the smallest devices, which only needs math.h and allocates
            no memory. "python" is one file that only needs the standard library.
        path : str or path-like, optional
            Where to write it, usually ``.onnx``, ``.h`` or ``.py``.
        dtype : {"float64", "float32"}, default="float64"
            For "onnx": of numbers that go in and come out; what is between is computed in double either way. For "c":
            of numbers and arithmetic; float halves the size and keeps six digits at most, fewer where output weights
            cancel each other.
        interval : float in (0, 1), optional
            For "onnx" and regressors: further outputs "lower" and "upper", the ends of an interval that holds this
            share of new rows (see `predict`).
        name : str, default="scne_model"
            For "c": beginning of every name in it.

        Returns
        -------
        onnx.ModelProto, or str with the source

        Notes
        -----
        ONNX: the input is "X" of shape (N, d); the output of a regressor is "y", as `predict` gives it, those of a
        classifier are "label" (string for text, int64 for numbers, 0 and 1 for false and true) and "probabilities" in
        the order of `classes_`. A row with a missing or infinite number has NaN there, and a label that is no class:
        "" or the least int64. A model that was fitted on files has one input of shape (N, 1) for each column instead,
        under its name: numbers as double (NaN where missing), true or false as bool (as numbers where the training rows
        had gaps), text as string ("" where missing), dates as int64 seconds since 1970-01-01 00:00 by the column's own
        clock (-2^63 where missing), ``values.astype("datetime64[s]").astype("int64")`` in NumPy. The properties
        "columns" and "classes" of the model list all that as JSON.

        C: ``NAME_predict(const double *row, double *out)``, with ``NAME_INPUTS`` and ``NAME_OUTPUTS`` (in capitals) for
        the lengths of the two. Of a classifier ``NAME_predict_proba(const double *row, double *out)``,
        ``int NAME_predict(const double *row)``, which gives the place of the most probable class or -1 when a number in
        the row is not finite, the table ``NAME_classes`` (``const char *`` in UTF-8, or ``long long``) and
        ``NAME_CLASSES``. A model that was fitted on files takes the encoded columns, which the comment at its beginning
        describes.

        Python: ``predict(row)`` and ``predict_rows(rows)``, and of a classifier ``predict_proba(row)`` and
        ``predict_proba_rows(rows)`` in the order of ``CLASSES``, take rows of numbers or mappings from column names;
        those of a model that was fitted on files take values as they are in the table (None where one is missing). As a
        program it reads CSV rows from standard input.

        Examples
        --------
        >>> import numpy as np
        >>> import onnxruntime
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
        >>> session = onnxruntime.InferenceSession(model.export("onnx").SerializeToString())
        >>> bool(np.allclose(session.run(["y"], {"X": X})[0], model.predict(X), rtol=0, atol=1e-12))
        True
        >>> "void sine_predict(const double *row, double *out)" in model.export("c", name="sine")
        True
        >>> sine = {"__name__": "sine"}
        >>> exec(model.export("python"), sine)
        >>> bool(abs(sine["predict"]([1.0]) - model.predict([[1.0]])[0]) < 1e-12)
        True
        """
        from scne.models import ExportError, to_c, to_onnx, to_python

        if form not in FORMS:
            raise ValueError(f"form is {form!r}, but it must be one of {', '.join(map(repr, FORMS))}.")
        for name in options:
            if name not in FORMS[form]:
                takes = ", ".join(FORMS[form]) or "no options"
                raise TypeError(f"export({form!r}) got {name!r}, but it takes {takes}.")
        # A subclass may predict otherwise.
        if not type(self).__module__.startswith("scne."):
            raise ExportError(f"The model is a {type(self).__name__}, but only the classes of scne can be exported.")
        check_is_fitted(self)
        plan = self._export_plan(options.pop("interval", None))
        if form == "onnx":
            return to_onnx(plan, path, **options)
        return to_c(plan, path, **options) if form == "c" else to_python(plan, path)

    @abstractmethod
    def _export_plan(self, interval: float | None) -> "ExportPlan":
        """What the fitted model computes."""
