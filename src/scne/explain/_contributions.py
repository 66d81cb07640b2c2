"""Predictions as sums of terms of columns or sources, or of sets of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.explain._layer_game import LayerGame
from scne.explain._permutation import Name
from scne.explain._players import Places, Players
from scne.explain._tabled_nodes import TABLED_ROWS
from scne.explain._value_tables import CELL_WIDTHS
from scne.fitting import FittedNetworks
from scne.networks import KERNELS
from scne.passes import Engine, announce

# Pairs of a row and a row of the background that a thread works on at a time.
_PAIRS_TOGETHER = 2_048
# From so many rows on making tables takes less time than it saves.
FEWEST_FOR_TABLES = 2_000
# The largest error of a node, which goes from -1 to 1 or from 0 to 1; nodes with series that weigh nothing.
_MOST_NODE_ERROR, _TINY = 0.5, 1e-300
# Players of a node whose sets are told apart: 2^p terms each.
MOST_PLAYERS_OF_SETS = 10


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contribution of each term to the predictions of some rows.

    ``base_value + values.sum(axis=1)`` is the prediction, to rounding.

    Attributes
    ----------
    names : tuple of str, or of int
        Of the columns or sources; positions where columns have no names. Of sets, the names joined by " x ".
    values : ndarray of shape (n_rows, k) or (n_rows, k, n_outputs), as y was
        In units of y.
    base_value : float, or ndarray of shape (n_outputs,)
        The mean prediction of the background.
    members : tuple of tuple
        The columns or sources of each term: one, or those of the set.
    data : ndarray of shape (n_rows, k) or None
        The values of the columns, where terms are columns and the rows were in memory.
    n_background : int
        Rows of the background.
    """

    names: tuple[Name, ...]
    values: NDArray[np.float64]
    base_value: float | NDArray[np.float64]
    members: tuple[tuple[Name, ...], ...]
    data: NDArray[Any] | None
    n_background: int

    @property
    def predictions(self) -> NDArray[np.float64]:
        """The predictions that the terms add up to, shape (n_rows,) or (n_rows, n_outputs)."""
        predictions: NDArray[np.float64] = self.base_value + self.values.sum(axis=1)
        return predictions

    def of_output(self, output: int) -> tuple[NDArray[np.float64], float]:
        """The values (n_rows, k) and the base value of one output."""
        if self.values.ndim == 2:
            return self.values, float(self.base_value)
        return self.values[:, :, output], float(np.atleast_1d(self.base_value)[output])

    def to_explanation(self) -> Any:
        """A ``shap.Explanation``, for shap's own plots (``pip install shap``).

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> model = SCNRegressor(20, random_state=0).fit(X, X[:, 0] * X[:, 1])
        >>> explanation = model.contributions(X).to_explanation()
        >>> explanation.shape, explanation.feature_names
        ((200, 2), ['0', '1'])
        """
        from shap import Explanation

        base = np.broadcast_to(self.base_value, (len(self.values), *self.values.shape[2:])).copy()
        return Explanation(self.values, base, data=self.data, feature_names=[str(name) for name in self.names])


@dataclass(frozen=True, eq=False)
class _Terms:
    """All terms, and where those of a node are by the players that it reads."""

    members: Sequence[tuple[int, ...]]
    places: Places


def contributions(
    model: FittedNetworks,
    inputs: NDArray[np.float64],
    background: NDArray[np.float64],
    players: Players,
    engine: Engine,
    *,
    interactions: bool = False,
    tolerance: float = 1e-10,
) -> Contributions:
    """Terms of the outputs for encoded inputs (n, d) against a background (B, d).

    Parameters
    ----------
    interactions : bool
        Terms of all sets of players that any node reads together, in the place of Shapley values of the players.
    tolerance : float
        The largest error of a Shapley value, in units of the scaled target, where nodes read so many players that
        they are not enumerated. Sums are exact whatever it is.
    """
    explainer = Explainer(
        model, background, players, engine, interactions=interactions, tolerance=tolerance, n_rows=len(inputs)
    )
    return explainer.of(inputs, engine)


class Explainer:
    """Gives the terms of rows against a background, some rows after the other.

    Parameters
    ----------
    model, background, players, engine, interactions, tolerance
        As for `contributions`.
    n_rows : int
        How many there will be in all: of many the values of coalitions are looked up in tables.
    """

    def __init__(
        self,
        model: FittedNetworks,
        background: NDArray[np.float64],
        players: Players,
        engine: Engine,
        *,
        interactions: bool,
        tolerance: float,
        n_rows: int,
    ) -> None:
        if model.loss.link != "identity":
            raise ValueError(
                f"This model was fitted with loss={model.loss.name!r}, whose predictions are not sums of its nodes; "
                "contributions need loss='squared', 'huber', 'robust' or a single quantile."
            )
        if not len(background):
            raise ValueError("background has no rows; pass some to compare with, such as rows of the fit.")
        self._model, self._players = model, players
        self._n_background = len(background)
        self._terms = terms = _terms_of_sets(model, players) if interactions else _terms_of_players(players)
        layers, weights = model.terms()

        def games(width: float | None) -> list[LayerGame]:
            return [
                LayerGame(layer, beta / len(layers), background, players, terms.places, interactions, width)
                for layer, beta in zip(layers, weights, strict=True)
            ]

        tabled = KERNELS is not None and n_rows >= FEWEST_FOR_TABLES
        tries = map(games, CELL_WIDTHS if tabled else ())
        fitting = (held for held in tries if _suit(held, tolerance))
        self._games: list[LayerGame] = next(fitting, []) or games(None)
        # Every node that has a series makes an error, times its weight.
        series_weight = max(sum(game.series_weight for game in self._games), _TINY)
        self._tolerance = min(_MOST_NODE_ERROR, tolerance / series_weight)
        self._base: NDArray[np.float64] = np.asarray(model.outputs(background, engine)).mean(axis=0)

    def of(self, inputs: NDArray[np.float64], engine: Engine) -> Contributions:
        """Terms of the outputs for encoded inputs (n, d)."""
        model = self._model
        values = np.zeros((len(inputs), len(self._terms.members), model.n_outputs))
        few = max(1, min(64, _PAIRS_TOGETHER // self._n_background))
        step = few if self._games[0].tables is None else TABLED_ROWS
        starts = list(range(0, len(inputs), step))

        def write(start: int) -> None:
            rows = slice(start, start + step)
            for game in self._games:
                game.add(inputs[rows], values[rows], self._tolerance)

        for done, _ in enumerate(engine.map(write, starts)):
            announce("explaining rows", done + 1, len(starts), len(inputs))
        values *= model.target_scaling.scale
        flat = model.columns.flat_target
        members = tuple(tuple(self._players.names[player] for player in held) for held in self._terms.members)
        return Contributions(
            tuple(held[0] if len(held) == 1 else " x ".join(map(str, held)) for held in members),
            values[:, :, 0] if flat else values,
            float(self._base[0]) if flat else self._base,
            members,
            None,
            self._n_background,
        )


def _suit(games: Sequence[LayerGame], tolerance: float) -> bool:
    """Whether tables tell all nodes, closely enough: beside nodes that are computed pair by pair they save nothing."""
    error = sum(game.tables.error for game in games if game.tables is not None)
    return error <= tolerance and all(game.rests_on_tables for game in games)


def _terms_of_players(players: Players) -> _Terms:
    return _Terms([(player,) for player in range(len(players.names))], list)


def _terms_of_sets(model: FittedNetworks, players: Players) -> _Terms:
    """Every player, and every set of players within what a node reads."""
    read = {(player,) for player in range(len(players.names))}
    for layer in model.layers:
        of_features = players.of_columns[layer.columns[layer.scaling.feature_columns]]
        seen = np.unique(of_features)
        reads = np.array([layer.weights[of_features == player].any(axis=0) for player in seen.tolist()])
        for column in np.unique(reads, axis=1).T:
            read.add(tuple(seen[column].tolist()))
    most = max(map(len, read))
    if most > MOST_PLAYERS_OF_SETS:
        raise ValueError(
            f"A node of this model reads {most} of the {len(players.names)} columns or sources, which have "
            f"2^{most} sets; interactions are told apart for up to {MOST_PLAYERS_OF_SETS}. Pass interactions=False, or "
            "by='sources' (or a mapping) with fewer of them."
        )
    sets = {held for node in read for size in range(1, len(node) + 1) for held in combinations(node, size)}
    members = sorted(sets, key=lambda held: (len(held), held))
    place_of = {held: place for place, held in enumerate(members)}

    def places(node: tuple[int, ...]) -> list[int]:
        # As `set_matrix` orders the sets: bit j of their number says whether the j-th player is in it.
        return [
            place_of[tuple(player for j, player in enumerate(node) if number >> j & 1)]
            for number in range(1, 1 << len(node))
        ]

    return _Terms(members, places)
