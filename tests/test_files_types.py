"""A column whose type has changed since the fit is converted where that is exact, and refused where it is not."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from ensembles import plain_ensemble

from scne import SCNRegressor, load, open_rows
from scne.rows import DataError, EncoderLearner

N = 48
ROW = np.arange(N)
HOURS = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * int(i)) for i in ROW]
MIDNIGHTS = [dt.datetime(2024, 1, 1) + dt.timedelta(days=9 * int(i)) for i in ROW]
DAYS = [day.date() for day in MIDNIGHTS]
CODES = 7 + ROW % 4


def stamps(values, unit="us", zone=None):
    naive = pa.array(values, pa.timestamp("us"))
    return (
        naive.cast(pa.timestamp(unit))
        if zone is None
        else naive.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))
    )


def write(path, values):
    pq.write_table(pa.table({"x": values, "y": np.sin(ROW / 5)}), path)
    return path


def predictions(tmp_path, then, now, **options):
    """Of a model fitted on one column, loaded from its file, for another; also by the rows opened without the model."""
    rows = open_rows(write(tmp_path / "then.parquet", then), target="y", **options)
    plain_ensemble(SCNRegressor(4, n_candidates=10), random_state=0).fit(rows).save(tmp_path / "m.scne")
    model = load(tmp_path / "m.scne")
    path = now if hasattr(now, "suffix") else write(tmp_path / "now.parquet", now)
    return model.predict(open_rows(path, target=None, groups={"g": ["x"]}, like=model.encoder_)), model


def same(tmp_path, then, now, **options):
    """The new column gives what the old one gives."""
    found, model = predictions(tmp_path, then, now, **options)
    expected = model.predict(open_rows(tmp_path / "then.parquet", target=None, groups={"g": ["x"]}))
    assert np.ptp(expected) > 0
    assert found.tolist() == expected.tolist()


def refused(tmp_path, then, now, *words, **options):
    with pytest.raises(DataError) as caught:
        predictions(tmp_path, then, now, **options)
    for word in ("'x'", "now.parquet", *words):
        assert word in str(caught.value)


class TestConverted:
    @pytest.mark.parametrize(
        "type_", [pa.int8(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.float16()]
    )
    def test_numbers_of_any_width(self, tmp_path, type_):
        now = (
            pa.array([decimal.Decimal(int(i)) for i in ROW])
            if pa.types.is_decimal(type_)
            else pa.array(ROW.astype("f4"))
        )
        same(tmp_path, pa.array(ROW), now.cast(type_))
        same(tmp_path, now.cast(type_), pa.array(ROW))

    @pytest.mark.parametrize("type_", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()])
    def test_texts_in_any_storage(self, tmp_path, type_):
        texts = pa.array(["a", "b", "c"] * (N // 3))
        now = texts.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else texts.cast(type_)
        if type_ == pa.string_view():
            # Parquet knows no views.
            with pa.ipc.new_file(tmp_path / "now.arrow", pa.schema([("x", type_)])) as writer:
                writer.write_table(pa.table({"x": now}))
            now = tmp_path / "now.arrow"
        same(tmp_path, texts, now)

    @pytest.mark.parametrize("unit", ["s", "ms", "ns"])
    def test_timestamps_of_other_units(self, tmp_path, unit):
        same(tmp_path, stamps(HOURS), stamps(HOURS, unit))

    def test_the_same_moments_in_another_time_zone(self, tmp_path):
        same(tmp_path, stamps(HOURS, zone="Europe/Berlin"), stamps(HOURS, zone="UTC"))
        same(tmp_path, stamps(HOURS, zone="UTC"), stamps(HOURS, "ns", "America/New_York"))

    def test_dates_and_timestamps_where_the_hour_says_nothing(self, tmp_path):
        same(tmp_path, pa.array(DAYS), stamps(MIDNIGHTS))
        same(tmp_path, stamps(MIDNIGHTS), pa.array(DAYS))
        same(tmp_path, stamps(MIDNIGHTS), pa.array(DAYS, pa.date64()))

    def test_flags_and_their_numbers(self, tmp_path):
        flags = pa.array(ROW % 3 == 0)
        same(tmp_path, flags, flags.cast(pa.int8()))
        same(tmp_path, flags.cast(pa.int8()), flags)

    def test_codes_that_became_floats_because_of_gaps(self, tmp_path):
        codes = pa.array(CODES)
        same(tmp_path, codes, codes.cast(pa.float64()), kinds={"x": "category"})
        same(tmp_path, codes.cast(pa.float64()), codes.cast(pa.int16()), kinds={"x": "category"})
        rows = open_rows(
            write(tmp_path / "a.parquet", pa.array([7.0, np.nan, None, 8.5] * 12, from_pandas=False)),
            target="y",
            kinds={"x": "category"},
        )
        assert next(rows.batches())["x"].to_pylist()[:4] == ["7", None, None, "8.5"]

    def test_columns_of_text_files_are_read_as_they_were(self, tmp_path):
        codes = pa.array([["1", "2", "B"][i % 3] for i in ROW])
        model = predictions(tmp_path, codes, codes)[1]
        # All of the new codes look like numbers.
        for name, values in (("a.csv", ["1", "2"]), ("b.csv", ["2", "1"])):
            (tmp_path / name).write_text("x\n" + "\n".join(values) + "\n")
        first, second = (
            model.predict(open_rows(tmp_path / name, target=None, like=model.encoder_)) for name in ("a.csv", "b.csv")
        )
        assert first.tolist() == second.tolist()[::-1]
        assert first[0] != first[1]

    def test_columns_of_folder_names_are_read_as_they_were(self, tmp_path):
        for code in ("1", "2B", "3"):
            (tmp_path / "then" / f"x={code}").mkdir(parents=True)
            pq.write_table(pa.table({"z": ROW, "y": ROW * len(code)}), tmp_path / "then" / f"x={code}" / "0.parquet")
        model = plain_ensemble(SCNRegressor(4, n_candidates=10), random_state=0)
        model.fit(open_rows(tmp_path / "then", target="y"))
        (tmp_path / "now" / "x=3").mkdir(parents=True)
        pq.write_table(pa.table({"z": ROW, "y": ROW}), tmp_path / "now" / "x=3" / "0.parquet")
        found = model.predict(open_rows(tmp_path / "now", target="y"))
        assert found.tolist() == model.predict(open_rows(tmp_path / "then", target="y"))[-N:].tolist()


class TestRefused:
    @pytest.mark.parametrize(
        ("then", "now"),
        [
            (stamps(HOURS), pa.array(ROW)),
            (stamps(HOURS), stamps(HOURS, zone="UTC")),
            (stamps(HOURS, zone="UTC"), stamps(HOURS)),
            (stamps(HOURS), pa.array(DAYS)),
            (stamps(MIDNIGHTS, zone="UTC"), pa.array(DAYS)),
            (stamps(HOURS), pa.array([str(hour) for hour in HOURS])),
            (stamps(HOURS), stamps(HOURS).cast(pa.time64("us"))),
            (stamps(HOURS).cast(pa.time64("us")), stamps(HOURS)),
            (pa.array(DAYS), pa.array(ROW, pa.int32())),
            (pa.array(["a", "b"] * (N // 2)), pa.array(ROW)),
            (pa.array(["1", "2"] * (N // 2)), pa.array(ROW % 2)),
            (pa.array(["a", "b"] * (N // 2)), pa.array(ROW % 2 == 0)),
            (pa.array(["a", "b"] * (N // 2)), pa.array(DAYS)),
            (pa.array(ROW), pa.array([str(i) for i in ROW])),
            (pa.array(ROW / 2), stamps(HOURS)),
            (pa.array(ROW), pa.array(DAYS)),
            (pa.array(ROW % 2 == 0), pa.array(["true", "false"] * (N // 2))),
        ],
        ids=lambda array: str(array.type),
    )
    def test_between_fit_and_prediction(self, tmp_path, then, now):
        refused(tmp_path, then, now, "when the model was fitted", str(now.type))

    def test_numbers_that_are_no_flags(self, tmp_path):
        refused(tmp_path, pa.array(ROW % 2 == 0), pa.array(ROW), "true or false", "holds 2")

    def test_codes_that_were_integers_and_are_texts(self, tmp_path):
        refused(
            tmp_path, pa.array(CODES), pa.array([f"0{c}" for c in CODES]), "number", "string", kinds={"x": "category"}
        )

    def test_numbers_stated_to_be_dates(self, tmp_path):
        path = write(tmp_path / "a.parquet", pa.array(ROW))
        with pytest.raises(
            DataError, match=r"'x' of .*a.parquet is int64 and cannot be read as a date, because nothing"
        ):
            open_rows(path, target="y", kinds={"x": "date"})

    def test_rows_that_were_opened_without_the_model(self, tmp_path):
        model = predictions(tmp_path, stamps(HOURS), stamps(HOURS))[1]
        with pytest.raises(DataError, match="'x' was a timestamp when the model was fitted, but is int64 in"):
            model.predict(open_rows(write(tmp_path / "now.parquet", pa.array(ROW)), target="y"))

    def test_tables(self, tmp_path):
        encoder = predictions(tmp_path, stamps(HOURS, zone="Europe/Berlin"), stamps(HOURS, zone="UTC"))[1].encoder_
        here, there = (pa.table({"x": stamps(HOURS, zone=zone)}) for zone in ("Europe/Berlin", "UTC"))
        assert encoder.transform(here).tolist() == encoder.transform(there).tolist()
        with pytest.raises(DataError, match="'x' was a timestamp, zone Europe/Berlin when"):
            encoder.transform(pa.table({"x": stamps(HOURS)}))


class TestWithinAFit:
    def folder(self, tmp_path, *columns):
        for number, values in enumerate(columns):
            write(tmp_path / f"{number}.parquet", values)
        return tmp_path

    def learned(self, path, **options):
        rows = open_rows(path, target="y", **options)
        learner = EncoderLearner(rows)
        for batch in rows.batches():
            learner.update(batch)
        return learner.finish()

    def test_dates_beside_hours(self, tmp_path):
        self.folder(tmp_path, stamps(HOURS), pa.array(DAYS))
        with pytest.raises(DataError, match=r"'x' has no hours in .*1.parquet, but other files of"):
            self.learned(tmp_path)

    def test_dates_beside_midnights(self, tmp_path):
        assert "x.hour" not in self.learned(self.folder(tmp_path, stamps(MIDNIGHTS), pa.array(DAYS))).names

    def test_a_stated_kind_does_not_turn_numbers_into_dates(self, tmp_path):
        self.folder(tmp_path, stamps(HOURS), pa.array(ROW))
        with pytest.raises(DataError, match=r"'x' of .*1.parquet is int64 and cannot be read as a date"):
            open_rows(tmp_path, target="y", kinds={"x": "date"})

    def test_a_stated_date_of_a_text_file_may_get_hours(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,y\n" + "2024-01-01,1\n" * 100_000 + "2024-01-01 12:00:00.25,2\n")
        rows = open_rows(tmp_path / "a.csv", target="y", kinds={"x": "date"})
        assert rows.count_rows() == 100_001
        assert pa.Table.from_batches(rows.batches())["x"][-1].as_py() == dt.datetime(2024, 1, 1, 12, 0, 0, 250_000)


def test_text_files_and_tables_of_the_same_rows_give_the_same_predictions(tmp_path):
    rows = pa.table(
        {"n": ROW, "f": ROW / 4, "c": ["a", "b"] * (N // 2), "d": DAYS, "t": stamps(HOURS), "b": ROW % 3 == 0, "y": ROW}
    )
    csv.write_csv(rows, tmp_path / "a.csv")
    pq.write_table(rows, tmp_path / "a.parquet")
    models = [
        plain_ensemble(SCNRegressor(4, n_candidates=10), random_state=0).fit(open_rows(tmp_path / name, target="y"))
        for name in ("a.csv", "a.parquet")
    ]
    assert models[0].encoder_ == models[1].encoder_
    for model in models:
        found = [model.predict(open_rows(tmp_path / name, target="y")).tolist() for name in ("a.csv", "a.parquet")]
        assert found[0] == found[1]
