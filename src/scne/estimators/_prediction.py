"""What every fitted model can do: predict arrays, frames, files and Dask collections."""

import os
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from scne.estimators._scores import scored
from scne.estimators.inputs._dask import is_dask_collection, predict_lazily
from scne.estimators.inputs._data import check_prediction_inputs
from scne.estimators.inputs._files import is_file_rows, predict_files
from scne.estimators.inputs._rows_to_shuffle import rows_to_shuffle
from scne.explain import PermutationImportances, paragraph, permutation_importances, shares, total_effects
from scne.fitting import PredictionInterval, around, check_integer, half_widths, mean_output, open_engine
from scne.networks import HiddenLayer
from scne.passes import Engine
from scne.rows import ColumnScaling


class Leaving:
    """A fitted model that leaves the process as a file, or as source or a graph that runs without scne."""

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
        self._write("save", path, with_system=with_system)

    def _write(self, writer: str, *arguments: Any, **options: Any) -> Any:
        check_is_fitted(self)
        # The room that knows how, `scne.models`, lies to the right of this one. `scne` itself brings the two together,
        # and is asked by its name, so that neither is loaded for the other.
        return import_module("scne").find_writers()[writer](self, *arguments, **options)


class PredictingRegressor(Leaving, RegressorMixin, BaseEstimator, ABC):
    """Base of the networks and the ensembles: one or several outputs, fitted once it has output weights."""

    device: str | None
    n_jobs: int | None
    n_features_in_: int
    target_scaling_: ColumnScaling
    _flat_target: bool

    @abstractmethod
    def _layers(self) -> list[HiddenLayer]:
        """The hidden layer of each network."""

    @abstractmethod
    def _joint_weights(self) -> list[NDArray[np.float64]]:
        """The output weights of each network, those of direct links below those of nodes."""

    @abstractmethod
    def _input_scaling(self) -> str:
        """How the inputs were scaled."""

    def _outputs(self, inputs: NDArray, engine: Engine) -> NDArray[np.float64]:
        """Outputs (n, q) for checked inputs (n, d), in the units of y."""
        return self.target_scaling_.undo(mean_output(inputs, self._layers(), self._joint_weights(), engine))

    @overload
    def predict(self, X: Any, interval: None = None) -> NDArray[np.float64]: ...

    @overload
    def predict(self, X: Any, interval: float) -> PredictionInterval: ...

    def predict(self, X: Any, interval: float | None = None) -> NDArray[np.float64] | PredictionInterval:
        """Outputs for new rows, in the units of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
        interval : float in (0, 1) or None, default=None
            Also give an interval around every prediction that a share of `interval` of new rows lie in, each output
            for itself. It rests on rows that the fit held out (X_val, or `validation_fraction`), by split conformal
            prediction: right for any noise, as long as new rows come from where those rows came from. The width is
            the same for every row, so where the noise is larger than elsewhere intervals cover less, and elsewhere
            more.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was; a Dask array, not yet computed, when X is Dask's.
        With `interval` a named tuple of three of them: prediction, lower and upper.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, (2000, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
        >>> model = SCNRegressor(20, validation_fraction=0.5, random_state=0).fit(X[:1000], y[:1000])
        >>> prediction, lower, upper = model.predict(X[1000:], interval=0.9)
        >>> bool(0.87 < np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) < 0.93)
        True
        """
        check_is_fitted(self)
        if interval is not None:
            widths = half_widths(self, interval)
            return around(self.predict(X), widths, self._flat_target)
        if is_dask_collection(X):
            return predict_lazily(self, X)
        if is_file_rows(X):
            outputs = predict_files(self, X)
        else:
            inputs = check_prediction_inputs(self, X)
            with open_engine(self.device, "float64", self.n_jobs, X) as engine:
                outputs = self._outputs(inputs, engine)
        return outputs[:, 0] if self._flat_target else outputs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, the share of the variance of y that predictions explain; the mean over the outputs when y has several.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            A tensor, or not, whatever X is.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        found = scored(r2_score, self.predict, X, y, sample_weight)
        return super().score(X, y, sample_weight) if found is None else found

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each column in what moves the output, shape (n_features_in_,): they sum to 1, or are all zero.

        The total effect (total Sobol index, unnormalised) of a column is the variance that the output has left when
        all other columns are held; here it is divided by the sum of all. It belongs to the fitted function alone,
        needs no rows and comes out the same from a model file. Columns are taken as independent of each other, with
        the mean, deviation and range that their scaling knows ("0-1" and "none" know the range alone, and stand for
        uniform columns). Several outputs count by their scaled variance. Where columns depend on each other strongly,
        or to know what a column is worth in terms of the error, use `permutation_importances` on rows.
        """
        check_is_fitted(self)
        effects = total_effects(self._layers(), self._joint_weights(), self.n_features_in_, self._input_scaling())
        return shares(effects)

    def permutation_importances(
        self,
        X: Any,
        y: Any = None,
        n_repeats: int = 5,
        random_state: Any = None,
        *,
        sample_weight: Any = None,
        max_rows: int | None = 100_000,
    ) -> PermutationImportances:
        """What the root mean squared error rises by, in units of y, when columns are shuffled.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), or rows in files with their target
            Best of rows that the fit has not seen.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        n_repeats : int, default=5
            How often each column, and each group of columns, is shuffled.
        random_state : int, RandomState or None, default=None
        sample_weight : array-like of shape (n_rows,), optional
        max_rows : int or None, default=100_000
            Of more rows so many are drawn; None takes all.

        Returns
        -------
        PermutationImportances
            ``.columns`` and, for an ensemble, ``.groups`` (all columns of a group shuffled together) with names, mean
            and std over the repeats. Of a model fitted on files the columns are those of the files.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(400, 3))
        >>> y = 3 * X[:, 0] + X[:, 1] ** 2
        >>> model = SCNRegressor(20, random_state=0).fit(X[:300], y[:300])
        >>> found = model.permutation_importances(X[300:], y[300:], random_state=0)
        >>> [found.columns.names[place] for place in np.argsort(-found.columns.mean)]
        [0, 1, 2]
        """
        check_is_fitted(self)
        check_integer("n_repeats", n_repeats, 1)
        if max_rows is not None:
            check_integer("max_rows", max_rows, 1)
        generator = check_random_state(random_state)
        rows = rows_to_shuffle(self, X, y, sample_weight, max_rows, generator)
        return permutation_importances(self, rows, n_repeats, generator)

    def summary(self) -> str:
        """What the fit chose and why, and what error to expect, in one paragraph.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0])).summary()[:107]
        'This RVFLRegressor was fitted on 200 rows of 1 column. It is one network of 20 hidden nodes, drawn at rando'
        """
        check_is_fitted(self)
        return paragraph(self)

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
        return self._write("to_onnx", path, dtype=dtype, interval=interval)

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
        return self._write("to_c", path, name, dtype=dtype)

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
        return self._write("to_python", path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "output_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
