"""What a fitted classifier can be written as: a file, an ONNX graph, C and Python source."""

import os
from typing import Any

from scne.estimators._leaving import Leaving


class ExportedClassifier(Leaving):
    """The exports of the classifiers, which give classes and probabilities."""

    regressor_: Any
    classes_: Any
    probability_map_: Any

    def _plan_to_export(self, interval: float | None) -> Any:
        from scne.models import class_map, export_plan

        classes = class_map(self.classes_, self.probability_map_)
        return export_plan(self.regressor_.fitted_, type(self).__name__, None, classes)

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, dtype: str = "float64") -> Any:
        """This fitted classifier as ONNX, for runtimes without Python; needs the extra ``scne[onnx]``.

        Everything that `predict` and `predict_proba` do is in the graph, in double precision: in onnxruntime both agree
        up to rounding.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.onnx``.
        dtype : {"float64", "float32"}, default="float64"
            Of numbers that go in and of probabilities. What is between is computed in double either way.

        Returns
        -------
        onnx.ModelProto
            Its input is "X" of shape (N, d), and its outputs are "label" of shape (N,), the class (string for text,
            int64 for numbers, 0 and 1 for false and true), and "probabilities" of shape (N, K), in the order of
            `classes_`.

            A row with a missing or infinite number has NaN for probabilities, and a label that is no class: "" for
            text, the least int64 for numbers. The property "classes" of the model lists the classes and this label as
            JSON.

        Examples
        --------
        >>> import numpy as np
        >>> import onnxruntime
        >>> from sklearn.datasets import load_iris
        >>> from scne import SCNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SCNClassifier(10, random_state=0).fit(X, y)
        >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        >>> label, found = session.run(["label", "probabilities"], {"X": X})
        >>> np.array_equal(label, model.predict(X)), np.allclose(found, model.predict_proba(X), rtol=0, atol=1e-12)
        (True, True)
        """
        from scne.models import to_onnx

        return to_onnx(self._export_plan(), path, dtype=dtype)

    def to_c(
        self, path: str | os.PathLike[str] | None = None, name: str = "scne_model", *, dtype: str = "float64"
    ) -> str:
        """This fitted classifier as one C99 header without dependencies but math.h, for the smallest devices.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.h``.
        name : str, default="scne_model"
            Beginning of every name in it. ``NAME_predict_proba(const double *row, double *out)`` writes the
            probabilities of the classes, ``int NAME_predict(const double *row)`` gives the place of the most probable
            class, or -1 when a number in the row is not finite. ``NAME_classes`` is the table of classes (``const char
            *`` in UTF-8 for text, ``long long`` for numbers), and ``NAME_INPUTS`` and ``NAME_CLASSES`` (in capitals)
            are the numbers of columns and of classes.
        dtype : {"float64", "float32"}, default="float64"
            double or float, for numbers and arithmetic. float halves the size and keeps six digits of outputs at most,
            fewer where output weights cancel each other.

        Returns
        -------
        str
            The header. It allocates nothing.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scne import SCNClassifier
        >>> header = SCNClassifier(10, random_state=0).fit(*load_iris(return_X_y=True)).to_c(name="iris")
        >>> "int iris_predict(const double *row)" in header, "#define IRIS_CLASSES 3" in header
        (True, True)
        """
        from scne.models import to_c

        return to_c(self._export_plan(), path, name, dtype=dtype)

    def to_python(self, path: str | os.PathLike[str] | None = None) -> str:
        """This fitted classifier as one Python file that needs nothing but the standard library.

        Parameters
        ----------
        path : str or path-like, optional
            Where to write it, usually ``.py``.

        Returns
        -------
        str
            The file. Its ``predict(row)`` gives the class of a row and ``predict_proba(row)`` the list of probabilities
            in the order of ``CLASSES``; ``predict_rows(rows)`` and ``predict_proba_rows(rows)`` do so for many. Rows
            are numbers in the order of the columns, or mappings from their names. As a program it reads CSV rows from
            standard input and writes the class and the probabilities of each.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scne import SCNClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = SCNClassifier(10, random_state=0).fit(X, y)
        >>> iris = {"__name__": "iris"}
        >>> exec(model.to_python(), iris)
        >>> iris["predict"](X.iloc[0])
        0
        >>> bool(abs(iris["predict_proba"](X.iloc[0])[0] - model.predict_proba(X)[0, 0]) < 1e-12)
        True
        """
        from scne.models import to_python

        return to_python(self._export_plan(), path)
