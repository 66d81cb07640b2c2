"""Small fitted models of every kind that can be exported, and rows to ask them about."""

import copy
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from altered import with_weights
from ensembles import plain_ensemble
from older_networks import OlderModel

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor, open_rows

few = {"n_candidates": 10, "random_state": 4}


def _settings_of_networks():
    """Every scaling with every activation, with links and without, limited to the training range and not.

    Files of older versions hold those that no parameters give any more.
    """
    for scaling, activation, linked, clip in product(
        ("0-1", "standard", "ramps", "none"), ("sigmoid", "tanh"), (False, True), (False, True)
    ):
        name = f"scn {scaling} {activation}{' linked' * linked}{' clipped' * clip}"
        yield name, OlderModel(SCNRegressor(6, scaling=scaling, activation=activation, **few), linked, clip)


ARRAY_MODELS = {
    **dict(_settings_of_networks()),
    "rvfl": RVFLRegressor(12, random_state=4),
    "rvfl without links": RVFLRegressor(12, direct_link=False, activation="tanh", random_state=4),
    "rvfl not limited": RVFLRegressor(12, scaling="min-max", random_state=4),
    "scn": SCNRegressor(6, **few),
    "scn not limited": SCNRegressor(6, scaling="min-max", **few),
    "scn that watches": SCNRegressor(6, validation_fraction=0.3, target_scaling="0-1", **few),
    "dnne": DNNERegressor(RVFLRegressor(8), n_estimators=3, random_state=4),
    "scne of groups": plain_ensemble(SCNRegressor(5, **few), groups={"b": [0, 1], "a": [2, 3]}, random_state=4),
    "scne on a line": plain_ensemble(SCNRegressor(5, **few), groups=[[0, 3], [1]], trend="linear", random_state=4),
    # Its trend reads the columns as its networks do, but for the limit of far values.
    "scne standard on a line": plain_ensemble(
        SCNRegressor(5, scaling="standard", **few), n_estimators=2, trend="linear", random_state=4
    ),
    "scne judged": SCNERegressor(n_estimators=2, random_state=4),
    "scne of ramps without trend": SCNERegressor(n_estimators=2, trend="none", random_state=4),
    "scne by the paper": SCNERegressor.paper([[0], [1, 2, 3]], max_hidden=5, random_state=4),
}
OUTPUTS = {"flat": None, "one column": 1, "three": 3}
COLUMNS = ["hour", "year", "load */ /* \\", "Month", "day", "'wind\"\n\u202e"]
DATED_MODELS = {
    "ramps": SCNERegressor(n_estimators=2, random_state=4),
    "one network": SCNRegressor(6, scaling="ramps", **few),
    "groups": plain_ensemble(SCNRegressor(6, scaling="ramps", **few), groups=[[0], [1, 3, 4]], trend="linear"),
    # Dates that only files of older versions have.
    "standard": OlderModel(SCNRegressor(6, scaling="standard", **few), dated=True),
    "none": OlderModel(SCNRegressor(6, scaling="none", **few), linked=True, limited=False, dated=True),
    "linear": OlderModel(plain_ensemble(SCNRegressor(6, **few), groups=[[0], [1, 3, 4]], trend="linear"), dated=True),
}


def arrays(n_rows=160, seed=2):
    X = np.random.default_rng(seed).normal(size=(n_rows, 4))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = 50 + np.exp(2 * X[:, 2])
    y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 3], np.log(X[:, 2])])
    return X, 3 + y


@cache
def array_model(name, outputs="flat"):
    X, y = arrays()
    wanted = OUTPUTS[outputs]
    return copy.deepcopy(ARRAY_MODELS[name]).fit(X, y.sum(axis=1) if wanted is None else y[:, :wanted])


def array_rows():
    """New rows, rows far outside of the training range, and zeros."""
    near, _ = arrays(40, seed=3)
    return np.vstack([near, 30 * near, -1e6 * near[:3], 1e100 * near[3:5], np.zeros((1, 4))])


def saturated_model():
    """A network far in the lower tail of its nodes, whose output weights, up to 1e282, make up for it."""
    X, y = arrays()
    model = SCNRegressor(6, scaling="0-1", **few).fit(X, y.sum(axis=1))
    depths = np.array([10.0, 40.0, 80.0, 200.0, 400.0, 650.0])
    member = model.fitted_.members[0]
    member = replace(member, layer=replace(member.layer, biases=member.layer.biases - depths))
    model.fitted_ = replace(model.fitted_, members=(member,))
    return with_weights(model, lambda weights: weights * np.exp(depths)[:, None])


def dated_frame(n_rows=200, seed=5):
    rng = np.random.default_rng(seed)
    days = [date(2021, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 1_400, n_rows)]
    parts = (
        rng.integers(0, 24, n_rows),
        [day.year for day in days],
        rng.lognormal(size=n_rows),
        [day.month for day in days],
        [day.day for day in days],
        rng.normal(size=n_rows),
    )
    return pd.DataFrame({name: np.asarray(part, dtype=float) for name, part in zip(COLUMNS, parts, strict=True)})


@cache
def dated_model(name):
    X = dated_frame()
    weekday = [date(int(y), int(m), int(d)).weekday() for y, m, d in X[["year", "Month", "day"]].to_numpy()]
    return copy.deepcopy(DATED_MODELS[name]).fit(X, np.sin(X["Month"]) + (np.array(weekday) > 4) + X[COLUMNS[2]])


def dated_rows():
    """Days of all centuries, leap days and ends of months among them, and some that no calendar has."""
    days = [date(1600, 2, 29), date(1900, 2, 28), date(1900, 3, 1), date(2000, 2, 29), date(2024, 12, 31)]
    days += [date(1583, 1, 1) + timedelta(days=997 * n) for n in range(300)]
    parts = [(day.year, day.month, day.day) for day in days]
    parts += [(2024, 13, 40), (-5, 0, 0), (-986, 5, 3), (2024.5, 2.9, 1.5), (1e6, 11, 31)]
    rows = np.tile([13.0, 0, 2.0, 0, 0, 0.5], (len(parts), 1))
    rows[:, [1, 3, 4]] = parts
    rows[:, 2] += np.linspace(-5, 50, len(parts))
    return pd.DataFrame(rows, columns=COLUMNS)


FILE_TYPES = {
    "size": pa.float64(),
    "count": pa.int64(),
    "on": pa.bool_(),
    "open": pa.bool_(),
    "where": pa.string(),
    "lower": pa.string(),
    "seen": pa.timestamp("us"),
    "local": pa.timestamp("ms", "Europe/Berlin"),
    "born": pa.date32(),
    "clock": pa.time32("s"),
}


def file_table(n_rows=400, seed=6):
    """A table of every kind of column, gaps in half of them, and more places than there are levels."""
    rng = np.random.default_rng(seed)
    start = datetime(1955, 3, 1)
    minutes = [timedelta(minutes=int(m)) for m in rng.integers(0, 60 * 24 * 365 * 80, n_rows)]
    places = ["", "Łódź", "north", "\u5317", *(f"place {n}" for n in range(60))]

    def gaps(values, share):
        return [None if missing else value for value, missing in zip(values, rng.random(n_rows) < share, strict=True)]

    values = {
        "size": gaps(rng.normal(10, 3, n_rows).tolist(), 0.2),
        "count": rng.integers(0, 9, n_rows).tolist(),
        "on": (rng.random(n_rows) < 0.4).tolist(),
        "open": gaps((rng.random(n_rows) < 0.4).tolist(), 0.2),
        "where": gaps([places[n] for n in np.minimum(rng.geometric(0.08, n_rows), 63)], 0.1),
        "lower": [str(level) for level in rng.choice(["a", "b"], n_rows)],
        "seen": gaps([start + m for m in minutes], 0.1),
        "local": [datetime(2020, 1, 1) + m / 40 for m in minutes],
        "born": gaps([(start + m).date() for m in minutes], 0.1),
        "clock": [time(int(h), int(m), 59) for h, m in rng.integers(0, [24, 60], (n_rows, 2))],
    }
    table = {name: pa.array(values[name], type_) for name, type_ in FILE_TYPES.items()}
    size = np.nan_to_num(table["size"].to_numpy(zero_copy_only=False).astype(float), nan=4.0)
    target = np.sin(size) + np.asarray(table["count"]) + [2.0 * (place == "north") for place in values["where"]]
    target += [0.0 if when is None else when.month / 4 for when in values["seen"]]
    return pa.table({**table, "y": target})


@cache
def file_model(folder):
    """An ensemble fitted on a file in a folder."""
    pq.write_table(file_table(), folder / "training.parquet")
    groups = {
        "numbers": ["size", "count", "on", "open"],
        "others": ["where", "lower", "seen", "local", "born", "clock"],
    }
    rows = open_rows(folder / "training.parquet", target="y", groups=groups)
    base = SCNRegressor(8, scaling="ramps", validation_fraction=0.3, **few)
    return plain_ensemble(base, trend="judged", random_state=4).fit(rows)


@cache
def many_targets_model(folder):
    """A model with so many targets that the most frequent places have columns, and one is for all others."""
    table = file_table()
    for n in range(8):
        table = table.append_column(f"y{n}", pa.array(np.roll(table["y"].to_numpy(), n)))
    pq.write_table(table, folder / "many.parquet")
    rows = open_rows(folder / "many.parquet", target=["y", *(f"y{n}" for n in range(8))])
    model = RVFLRegressor(8, random_state=4).fit(rows)
    assert [encoding.other for encoding in model.encoder_.encodings if encoding.form == "category"] == [True, False]
    return model


def file_predictions(model, table, folder):
    """What `predict` says of a table that was written to a file."""
    pq.write_table(table, folder / "new.parquet")
    return model.predict(open_rows(folder / "new.parquet", target=None, kinds=model.encoder_.kinds))


def size_of_terms(model, predictions):
    """What rounding errors are measured by: the sum of absolute output weights, in units of y, and the predictions."""
    scale = np.max(model.target_scaling_.scale)
    weights = sum(np.abs(beta).sum() for beta in model.fitted_.terms()[1]) / len(model.fitted_.terms()[1])
    return scale * weights + np.abs(model.target_scaling_.shift).max() + np.abs(predictions)


def assert_agree(found, wanted, model, digits=1e-13):
    """Equal up to rounding, and well within one millionth."""
    found = np.asarray(found)
    assert found.shape == wanted.shape
    errors = np.abs(found - wanted)
    assert (errors <= digits * size_of_terms(model, wanted)).all(), (errors / size_of_terms(model, wanted)).max()
    assert (errors <= 1e-6 * (np.abs(wanted) + 1e-3)).all(), errors.max()


def assert_agree_in_the_tail(found, model, X):
    """To 1e-12 of what the nodes themselves add, which rounding of their huge sums multiplies."""
    [layer], [weights] = model.fitted_.terms()
    hidden = layer.outputs(np.asarray(X, dtype=np.float64))
    assert hidden.min() < 1e-250
    terms = np.abs(hidden) @ np.abs(weights[:, 0]) * model.target_scaling_.scale[0]
    assert terms.max() > 1e-3
    assert (np.abs(np.ravel(found) - model.predict(X)) <= 1e-12 * (terms + np.abs(model.predict(X)))).all()


LARGE, SMALL = 1_000_000_000_007, 7


def level_table(n_rows=2_400, seed=20, first=LARGE):
    """Towns and persons, each with an effect on two targets: forty texts, and numbers that name 120 persons.

    One town is an empty text and one is not ASCII; some towns and persons are missing.
    """
    rng = np.random.default_rng(seed)
    effects = np.random.default_rng(0).normal(size=(160, 2))
    names = ["", "Łódź", *(f"town {n}" for n in range(38))]
    town, person = rng.integers(0, 40, n_rows), rng.integers(0, 120, n_rows)
    x = rng.normal(size=n_rows)
    y = effects[town] + 2 * effects[40 + person] + x[:, None]
    no_town, no_person = rng.random((2, n_rows)) < 0.05
    return pa.table(
        {
            "x": x,
            "town": pa.array([names[n] for n in town], mask=no_town),
            # In an order that says nothing, so that ranges of numbers say nothing either.
            "person": pa.array(first + 7_919 * person % 1_009, pa.int64(), mask=no_person),
            "y": y[:, 0],
            "z": y[:, 1],
        }
    )


def new_levels(n_rows=200, seed=21, first=LARGE):
    """Rows of which some have towns and persons that no fit has seen, or numbers that are not whole."""
    table = level_table(n_rows, seed, first).drop_columns(["y", "z"])
    towns, persons = table["town"].to_pylist(), [None if p is None else float(p) for p in table["person"].to_pylist()]
    towns[:4], persons[2:9] = ["nowhere", " town 1", "Town 1", "\u5317"], [0.0, -0.0, 7.5, 1e300, -1e300, 2.0**53, -1.0]
    table = table.set_column(1, "town", pa.array(towns[:n_rows]))
    return table.set_column(2, "person", pa.array(persons[:n_rows], pa.float64()))


@cache
def level_model(folder, first=LARGE):
    """A model with means by level of two targets."""
    pq.write_table(level_table(first=first), folder / "levels.parquet")
    rows = open_rows(folder / "levels.parquet", target=["y", "z"])
    model = plain_ensemble(SCNRegressor(8, scaling="ramps", **few), n_estimators=2, random_state=4).fit(rows)
    assert [encoding.form for encoding in model.encoder_.encodings] == ["number", "level means", "named numbers"]
    return model
