"""A fit that others can watch: scikit-learn's callbacks (`sklearn.callback`, since its version 1.9) and the log.

What the numerics announce (`scne.passes.announce`) becomes scikit-learn's tree of tasks: the fit, its stages, their
steps. Callbacks may show progress, score the finished model, and end a stage that builds or tunes a network: after a
node they are told its errors, as `metadata`, and the network that a callback stops is left at what it is by then.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar

from scne.passes import Progress, also_listening, logging_stages

Regressor = TypeVar("Regressor", bound=type)


def watched(regressor: Regressor) -> Regressor:
    """The class itself, whose `fit` logs its stages and tells callbacks, and with `set_callbacks` to set them.

    Before version 1.9 of scikit-learn there are no callbacks; `scne.listening` needs none.

    Examples
    --------
    >>> from scne import SCNRegressor
    >>> from sklearn.callback import ProgressBar
    >>> model = SCNRegressor().set_callbacks(ProgressBar())
    """
    fit = regressor.fit  # type: ignore[attr-defined]

    @wraps(fit)
    def watched_fit(self: Any, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        with logging_stages(f"{type(self).__name__}.fit"):
            if not getattr(self, "_skl_callbacks", None):
                return fit(self, X, y, *args, **kwargs)
            _fit_with_callbacks(self, lambda: fit(self, X, y, *args, **kwargs), X, y)
        return self

    regressor.fit = watched_fit  # type: ignore[attr-defined]
    if find_spec("sklearn.callback") is not None:
        regressor.set_callbacks = _set_callbacks  # type: ignore[attr-defined]
    return regressor


def _set_callbacks(self: Any, *callbacks: Any) -> Any:
    """Set the callbacks of scikit-learn (`sklearn.callback`) that are told of the stages of a fit.

    Parameters
    ----------
    *callbacks : objects that follow the protocol `sklearn.callback.FitCallback`
        Instead of those set before; without any, none are told.

    Returns
    -------
    self
    """
    # It brings rich along, which a fit without callbacks need not wait for.
    from sklearn.callback import CallbackSupportMixin

    return CallbackSupportMixin.set_callbacks(self, *callbacks)


_set_callbacks.__name__ = "set_callbacks"


def _fit_with_callbacks(estimator: Any, fit: Callable[[], Any], X: Any, y: Any) -> None:
    """Fit inside scikit-learn's context of callbacks."""
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    def run(estimator: Any) -> None:
        root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
        tree = _TaskTree(estimator, root)
        root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        with also_listening(tree.hear):
            fit()
        tree.close()
        # By now the estimator is fitted: a copy of it needs no further attributes.
        root.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes={})

    with_callbacks(run)(estimator)


@dataclass
class _OpenStage:
    context: Any
    done: int = 0
    widest: int = 0


class _TaskTree:
    """Progress as tasks of scikit-learn: a stage is a subtask of the fit, each of its steps a subtask of the stage.

    A callback that asks to stop at a step ends its stage, and one that asks at the end of a stage ends the fit as soon
    as may be: every later stage that can end early ends at its first step.
    """

    def __init__(self, estimator: Any, root: Any) -> None:
        self._estimator = estimator
        self._root = root
        self._finishing = False
        # Networks that are built side by side announce from several threads.
        self._lock = threading.Lock()
        self._open: dict[str, _OpenStage] = {}
        self._ended: set[str] = set()

    def hear(self, progress: Progress) -> None:
        """Turn one announcement into tasks; raises StopIteration when a callback asks to stop."""
        with self._lock:
            stage = self._stage(progress)
            if stage is None:
                return
            step = progress.done - stage.done
            # A leap to the end, wider than any batch before it, says that the stage ended early.
            ended_early = progress.done >= progress.total and 0 < stage.widest < step
            asked = [self._run(stage.context, progress) for _ in range(0 if ended_early else step)]
            stage.done, stage.widest = progress.done, max(stage.widest, step)
            if progress.done >= progress.total:
                self._end(progress.stage)
            if any(asked) or self._finishing:
                raise StopIteration

    def close(self) -> None:
        """End the stages that stopped without a word."""
        with self._lock:
            for name in list(self._open):
                self._end(name)

    def _stage(self, progress: Progress) -> _OpenStage | None:
        """The stage of an announcement, begun where it is new; None when its end is announced again."""
        if progress.stage in self._ended and progress.done >= progress.total:
            return None
        if progress.stage in self._open and progress.done < self._open[progress.stage].done:
            self._end(progress.stage)
        if progress.stage not in self._open:
            context = self._root.subcontext(task_name=progress.stage, max_subtasks=progress.total)
            context.call_on_fit_task_begin(estimator=self._estimator)
            self._open[progress.stage] = _OpenStage(context)
            self._ended.discard(progress.stage)
        return self._open[progress.stage]

    def _run(self, stage: Any, progress: Progress) -> bool:
        context = stage.subcontext(task_name="step")
        context.call_on_fit_task_begin(estimator=self._estimator)
        errors = {"error": progress.error, "validation_error": progress.validation_error}
        known = {name: error for name, error in errors.items() if error is not None}
        return context.call_on_fit_task_end(estimator=self._estimator, metadata=known or None)

    def _end(self, name: str) -> None:
        stage = self._open.pop(name)
        self._ended.add(name)
        self._finishing |= stage.context.call_on_fit_task_end(estimator=self._estimator)
