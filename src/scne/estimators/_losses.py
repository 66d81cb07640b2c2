"""The parameter `loss` of ensembles, checked."""

from collections.abc import Iterable, Mapping

from scne.fitting import MATRIX_FREE, check_choice, check_real
from scne.networks import LOSSES, Loss

_MEDIAN = 0.5
# Levels nearer to the ends are told by too few rows.
_LEAST_LEVEL = 1e-3


def checked_loss(loss: object, trend: str, solver: str) -> Loss:
    """The loss of this parameter; it must go together with a trend and a solver.

    Examples
    --------
    >>> checked_loss({"quantile": [0.9, 0.1]}, "judged", "auto")
    Loss(name='quantile', levels=(0.1, 0.9))
    """
    if isinstance(loss, Mapping):
        if set(loss) != {"quantile"}:
            raise ValueError(f'loss is {dict(loss)!r}, but a mapping can only be {{"quantile": levels}}.')
        found = Loss("quantile", _levels(loss["quantile"]))
    else:
        name = check_choice("loss", loss, LOSSES)
        found = Loss(name, (_MEDIAN,) if name == "quantile" else ())
    if found.is_squared:
        return found
    if trend == "linear":
        raise ValueError(f'trend is "linear", which goes with loss="squared"; beside loss={found.name!r} use "none".')
    if solver in MATRIX_FREE:
        raise ValueError(f"solver is {solver!r}, which goes with loss='squared'; use solver={MATRIX_FREE[solver]!r}.")
    return found


def _levels(levels: object) -> tuple[float, ...]:
    given = list(levels) if isinstance(levels, Iterable) and not isinstance(levels, str) else [levels]
    if not given:
        raise ValueError('loss is {"quantile": []}, but it needs a level, such as 0.9, or several.')
    name = "the level of a quantile in loss"
    found = sorted(check_real(name, level, least=_LEAST_LEVEL, most=1 - _LEAST_LEVEL) for level in given)
    if len(set(found)) < len(found):
        raise ValueError(f"loss names the level {max(found, key=found.count):g} twice; each may be there once.")
    return tuple(found)
