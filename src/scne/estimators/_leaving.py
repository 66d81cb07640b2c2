"""Fitted models that leave the process, as a file, or as source or a graph that runs without scne."""

import os
from abc import abstractmethod
from typing import Any

from sklearn.utils.validation import check_is_fitted

from scne.fitting import FittedNetworks


class Leaving:
    """A fitted model that can be saved."""

    def save(self, path: str | os.PathLike[str], *, with_system: bool = False) -> None:
        """Save this fitted model as one file of plain tensors; `scne.load` gives it back with the same predictions.

        Parameters
        ----------
        path : str or path-like
            Usually ends in ``.scne``; what was there is replaced, by the whole new file or not at all.
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

    @abstractmethod
    def _plan_to_export(self, interval: float | None) -> Any:
        """What the fitted model computes."""

    def _export_plan(self, interval: float | None = None) -> Any:
        # A subclass may predict otherwise.
        if not type(self).__module__.startswith("scne."):
            from scne.models import ExportError

            raise ExportError(f"The model is a {type(self).__name__}, but only the classes of scne can be exported.")
        check_is_fitted(self)
        return self._plan_to_export(interval)


class ExportedRegressor(Leaving):
    """A fitted regressor that can be exported."""

    fitted_: FittedNetworks

    def _plan_to_export(self, interval: float | None) -> Any:
        from scne.models import export_plan

        return export_plan(self.fitted_, type(self).__name__, interval)

    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        dtype: str = "float64",
        interval: float | None = None,
    ) -> Any:
        """This fitted model as ONNX, for runtimes without Python; needs the extra ``scne[onnx]``.

        Everything that `predict` does is in the graph, in double precision: in onnxruntime both agree up to rounding.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.onnx``.
        dtype : {"float64", "float32"}, default="float64"
            Of numbers that go in and come out. What is between is computed in double either way.
        interval : float in (0, 1), optional
            Further outputs "lower" and "upper", the ends of an interval that holds this share of new rows (see
            `predict`).

        Returns
        -------
        onnx.ModelProto
            Its input is "X" of shape (N, d) and its output "y" of shape (N,) or (N, q), as `predict` gives it. A row
            with a missing or infinite number has NaN there.

            A model that was fitted on files has one input of shape (N, 1) for each column instead, under its name:
            numbers as double (NaN where missing), true or false as bool (as numbers where the training rows had
            gaps), text as string ("" where missing), dates as int64 seconds since 1970-01-01 00:00 by the column's
            own clock (-2^63 where missing), which is ``values.astype("datetime64[s]").astype("int64")`` in NumPy. The
            property "columns" of the model lists them as JSON, with what stands for a missing value in each.

        Examples
        --------
        >>> import numpy as np
        >>> import onnxruntime
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
        >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        >>> y = session.run(["y"], {"X": X})[0]
        >>> bool(np.allclose(y, model.predict(X), rtol=0, atol=1e-12))
        True
        """
        from scne.models import to_onnx

        return to_onnx(self._export_plan(interval), path, dtype=dtype)

    def to_c(
        self, path: str | os.PathLike[str] | None = None, name: str = "scne_model", *, dtype: str = "float64"
    ) -> str:
        """This fitted model as one C99 header without dependencies but math.h, for the smallest devices.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.h``.
        name : str, default="scne_model"
            Beginning of every name in it; the function is ``NAME_predict(const double *row, double *out)``, and
            ``NAME_INPUTS`` and ``NAME_OUTPUTS`` (in capitals) are the lengths of the two.
        dtype : {"float64", "float32"}, default="float64"
            double or float, for numbers and arithmetic. float halves the size and keeps six digits at most, fewer where
            output weights cancel each other.

        Returns
        -------
        str
            The header. It allocates nothing. A model that was fitted on files takes the encoded columns, which the
            comment at its beginning describes.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> header = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0])).to_c(name="sine")
        >>> "void sine_predict(const double *row, double *out)" in header
        True
        """
        from scne.models import to_c

        return to_c(self._export_plan(), path, name, dtype=dtype)

    def to_python(self, path: str | os.PathLike[str] | None = None) -> str:
        """This fitted model as one Python file that needs nothing but the standard library.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.py``.

        Returns
        -------
        str
            The file. Its ``predict(row)`` and ``predict_rows(rows)`` take rows of numbers, or mappings from column
            names; those of a model that was fitted on files take values as they are in the table (None where one is
            missing). As a program it reads CSV rows from standard input.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
        >>> sine = {"__name__": "sine"}
        >>> exec(model.to_python(), sine)
        >>> bool(abs(sine["predict"]([1.0]) - model.predict([[1.0]])[0]) < 1e-12)
        True
        """
        from scne.models import to_python

        return to_python(self._export_plan(), path)
