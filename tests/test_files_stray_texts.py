"""A column of numbers with a few texts between them never becomes a category without a word."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from commands import run_here
from ensembles import plain_ensemble

from scne import SCNRegressor, load, open_rows
from scne.rows import DataError, EncoderLearner, identity_of_files
from scne.rows._level_counts import MOST_LEVELS


def write(path, values, beside=None):
    """A file with a column x of some texts, and the target."""
    beside = range(len(values)) if beside is None else beside
    path.write_text("x,y\n" + "".join(f"{value},{y}\n" for value, y in zip(values, beside, strict=True)))
    return path


def fitted(path, **options):
    return plain_ensemble(SCNRegressor(4, n_candidates=10), random_state=0).fit(open_rows(path, target="y", **options))


def kinds(path, **options):
    return {encoding.column: encoding.kind for encoding in learned(path, **options).encodings}


def learned(path, **options):
    rows = open_rows(path, target="y", **options)
    learner = EncoderLearner(rows)
    for batch in rows.batches():
        learner.update(batch)
    return learner.finish()


def numbers(n=60):
    return [str(value) for value in np.random.default_rng(0).normal(size=n).round(3)]


class TestRefused:
    @pytest.mark.parametrize("mark", ["?", "unknown", "None", "-", " ", "3A", "1;2"])
    def test_a_text_among_numbers(self, tmp_path, mark):
        path = write(tmp_path / "a.csv", [*numbers(), mark, "1.5", mark])
        with pytest.raises(DataError) as caught:
            open_rows(path, target="y")
        for words in ("Column 'x'", str(path), f"{mark!r} (row 61)", f'--missing "{mark}"', f'missing=("{mark}",)'):
            assert words in str(caught.value)
        assert "--kind x=category" in str(caught.value)
        assert 'kinds={"x": "category"}' in str(caught.value)

    def test_a_few_texts_are_named_and_the_others_counted(self, tmp_path):
        path = write(tmp_path / "a.csv", [*numbers(), "a", "b", "a", "c", "d", "e"])
        with pytest.raises(DataError, match=r"'a' \(row 61\), 'b' \(row 62\), 'c' \(row 64\) and 2 more"):
            open_rows(path, target="y")

    def test_a_text_far_down(self, tmp_path):
        path = write(tmp_path / "a.csv", ["1.5"] * 299_998 + ["?", "x"])
        rows = open_rows(path, target="y")
        with pytest.raises(DataError, match=r"numbers, but also '\?' \(row 299,999\), 'x' \(row 300,000\)"):
            rows.count_rows() and list(rows.batches())

    def test_numbers_after_a_beginning_of_texts(self, tmp_path):
        path = write(tmp_path / "a.csv", ["unknown"] * 100_000 + ["1.5", "2.5"] * 60_000, beside=[0] * 220_000)
        assert open_rows(path, target="y").schema.field("x").type == pa.string()
        with pytest.raises(DataError, match=r"'x' of .*a.csv holds numbers, but also 'unknown' \(row 1\)"):
            learned(path)

    def test_more_numbers_than_a_category_has_levels(self, tmp_path):
        values = ["unknown"] * 90_000 + [str(value) for value in range(MOST_LEVELS + 5)]
        path = write(tmp_path / "a.csv", values, beside=[0] * len(values))
        with pytest.raises(DataError, match=r"numbers, but also 'unknown' \(row 1\)"):
            learned(path)

    def test_in_one_file_of_a_folder(self, tmp_path):
        write(tmp_path / "0.csv", numbers())
        write(tmp_path / "1.csv", [*numbers(), "?"])
        with pytest.raises(DataError, match=r"1.csv holds numbers, but also '\?' \(row 61\)"):
            open_rows(tmp_path, target="y")

    def test_the_place_in_a_folder_that_only_all_rows_show(self, tmp_path):
        write(tmp_path / "0.csv", ["a"] * 10)
        write(tmp_path / "1.csv", ["b", *["a"] * 150_000, *["1"] * 200_000], beside=[0] * 350_001)
        with pytest.raises(DataError, match=r"'a' \(row 1 of .*0.csv\), 'b' \(row 1 of .*1.csv\)"):
            learned(tmp_path)

    @pytest.mark.parametrize("value", ["1,5", "1.234,5", "12%", "$3", "5 €", "1'000", "0x1f"])
    def test_numbers_in_another_notation(self, tmp_path, value):
        path = tmp_path / "a.csv"
        path.write_text("x;y\n" + f"{value};1\n" * 40)
        with pytest.raises(DataError, match=r"numbers in a notation that is not read: "):
            learned(path)

    @pytest.mark.parametrize("value", ["31.12.2024", "12/31/2024", "31-12-2024 12:00", "2024/12/31", "12:30:01.5"])
    def test_dates_in_another_notation(self, tmp_path, value):
        path = write(tmp_path / "a.csv", [value] * 40)
        with pytest.raises(DataError, match="dates in a notation that is not read: "):
            open_rows(path, target="y")

    def test_a_text_among_dates(self, tmp_path):
        path = write(tmp_path / "a.csv", ["2024-01-01", "?", "2024-01-03"])
        with pytest.raises(DataError, match=r"holds dates, but also '\?' \(row 2\)"):
            open_rows(path, target="y")
        assert open_rows(path, target="y", missing="?").schema.field("x").type == pa.date32()

    def test_dates_in_two_forms(self, tmp_path):
        path = write(tmp_path / "a.csv", ["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"])
        with pytest.raises(DataError, match="several forms, such as with and without a time zone"):
            open_rows(path, target="y")

    def test_the_target(self, tmp_path):
        path = write(tmp_path / "a.csv", numbers(10), beside=[*range(9), "?"])
        with pytest.raises(DataError, match=r"target column 'y' of .* must hold numbers in every row.*'\?' \(row 10\)"):
            open_rows(path, target="y")


class TestText:
    @pytest.mark.parametrize(
        "values", [["A12", "B7"], ["SW1A", "EC1", "10115"], ["1A", "2B", "3"], ["yes", "no"], ["1.2.3", "2.0.1"]]
    )
    def test_codes_with_letters_stay_text(self, tmp_path, values):
        assert kinds(write(tmp_path / "a.csv", values * 20)) == {"x": "category"}

    def test_a_column_that_is_not_used_is_not_judged(self, tmp_path):
        path = write(tmp_path / "a.csv", ["1", "2", "?"], beside=[1, 2, 3])
        assert open_rows(path, target=None, ignore="x").input_names == ("y",)
        assert open_rows(path, target=None, keys="x").key_names == ("x",)

    def test_a_stated_category_is_one(self, tmp_path):
        path = write(tmp_path / "a.csv", ["1", "2", "3A", "007"] * 10)
        encoder = learned(path, kinds={"x": "category"})
        assert encoder.names == ("x=007", "x=1", "x=2", "x=3A")


class TestMissing:
    def test_the_model_is_that_of_empty_fields(self, tmp_path):
        values = numbers(200)
        values[7] = values[120] = "?"
        marked = write(tmp_path / "a.csv", values)
        empty = write(tmp_path / "b.csv", ["" if value == "?" else value for value in values])
        found, expected = fitted(marked, missing="?"), fitted(empty)
        assert found.encoder_.names == ("x", "x missing")
        assert (
            found.predict(open_rows(marked, target="y", missing="?")).tolist()
            == expected.predict(open_rows(empty, target="y")).tolist()
        )

    def test_marks_travel_with_the_model(self, tmp_path):
        path = write(tmp_path / "a.csv", [*numbers(), "?"])
        fitted(path, missing=["?", "-"]).save(tmp_path / "m.scne")
        model = load(tmp_path / "m.scne")
        assert model.encoder_.missing_texts == ("?", "-")
        new, empty = write(tmp_path / "b.csv", ["1.5", "-", "?"]), write(tmp_path / "c.csv", ["1.5", "", ""])
        expected = model.predict(open_rows(empty, target=None))
        assert model.predict(open_rows(new, target=None, like=model.encoder_)).tolist() == expected.tolist()

    def test_a_text_that_is_new_at_prediction(self, tmp_path):
        model = fitted(write(tmp_path / "a.csv", numbers()))
        new = write(tmp_path / "b.csv", ["1.5", "?"])
        with pytest.raises(DataError, match=r"'x' of .*b.csv holds numbers, but also '\?' \(row 2\)"):
            model.predict(open_rows(new, target=None, like=model.encoder_))

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_marks_hold_in_text_columns_of_every_format(self, tmp_path, ending):
        rows = pa.table({"c": ["a", "b", "?"] * 10, "d": [1.0, 2.0, -999.0] * 10, "y": np.arange(30.0)})
        path = tmp_path / f"a.{ending}"
        csv.write_csv(rows, path) if ending == "csv" else pq.write_table(rows, path)
        encoder = learned(path, missing=("?", "-999"))
        assert encoder.names == ("c=a", "c=b", "c missing", "d", "d missing")
        assert encoder.encodings[1].fill == 1.5

    def test_keys_of_tables_keep_their_texts(self, tmp_path):
        pq.write_table(pa.table({"k": ["?"], "x": ["?"], "y": [1.0]}), tmp_path / "a.parquet")
        batch = next(open_rows(tmp_path / "a.parquet", target="y", keys="k", missing="?").batches())
        assert (batch["k"].to_pylist(), batch["x"].to_pylist()) == (["?"], [None])

    def test_marks_decide_the_model_and_so_belong_to_its_checkpoint(self, tmp_path):
        path = write(tmp_path / "a.csv", numbers())
        marks = [identity_of_files(open_rows(path, target="y", missing=marks))["missing"] for marks in ((), "-1")]
        assert marks == [[], ["-1"]]

    def test_what_is_no_text(self, tmp_path):
        with pytest.raises(DataError, match="missing holds -999, but it must hold texts, such as '-999'"):
            open_rows(write(tmp_path / "a.csv", numbers()), target="y", missing=[-999])


class TestCommand:
    FAST = ("--networks", "1", "--nodes", "4", "--tuning", "0", "--json")

    def test_fit_and_predict(self, tmp_path, monkeypatch, capsys):
        path = write(tmp_path / "a.csv", [*numbers(), "?", "-999"])
        out = str(tmp_path / "m.scne")
        fit = ("fit", str(path), "--target", "y", "--out", out, *self.FAST)
        status, _, error = run_here(monkeypatch, capsys, *fit)
        assert status == 1
        assert "but also '?' (row 61)" in error
        status, _, _ = run_here(monkeypatch, capsys, *fit, "--missing", "?", "--missing", "-999")
        assert status == 0
        assert load(out).encoder_.missing_texts == ("?", "-999")
        predicted = tmp_path / "p.parquet"
        status, printed, _ = run_here(monkeypatch, capsys, "predict", out, str(path), "--out", str(predicted), "--json")
        assert (status, json.loads(printed)["rows"]) == (0, 62)
        status, printed, _ = run_here(monkeypatch, capsys, "evaluate", out, str(path), "--json")
        assert (status, json.loads(printed)["n_rows"]) == (0, 62)

    def test_kinds(self, tmp_path, monkeypatch, capsys):
        path = write(tmp_path / "a.csv", ["1", "2", "3A"] * 20)
        out = str(tmp_path / "m.scne")
        fit = ("fit", str(path), "--target", "y", "--out", out, *self.FAST)
        assert run_here(monkeypatch, capsys, *fit, "--kind", "x=category")[0] == 0
        assert load(out).encoder_.names == ("x=1", "x=2", "x=3A")
        for wrong, words in (("x", "must be a column and its type"), ("z=category", "no column 'z'")):
            status, _, error = run_here(monkeypatch, capsys, *fit, "--kind", wrong)
            assert status == 1
            assert words in error


def test_a_text_after_a_long_gap_is_not_called_a_stray_among_numbers(tmp_path):
    lines = [f"{row * 0.001:.4f},{'' if row < 150_000 else 'red'},{row % 7}" for row in range(150_010)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,y", *lines]))
    rows = open_rows(tmp_path / "a.csv", target="y")
    with pytest.raises(DataError, match=r"'b' .* holds 'red', but is empty in the first rows.* --kind b=category"):
        list(rows.batches())
    rows = open_rows(tmp_path / "a.csv", target="y", kinds={"b": "category"})
    assert sum(batch.num_rows for batch in rows.batches()) == 150_010


def test_a_column_is_judged_by_all_rows_and_not_by_the_first(tmp_path):
    texts = [str(row % 9) for row in range(20_000)] + [f"code {row % 50}" for row in range(45_000)]
    pq.write_table(pa.table({"x": texts, "y": np.arange(65_000.0)}), tmp_path / "a.parquet", row_group_size=10_000)
    rows = open_rows(tmp_path / "a.parquet", target="y")
    learner = EncoderLearner(rows)
    for batch in rows.batches():
        learner.update(batch)
    assert learner.finish().kinds == {"x": "category"}


def test_a_column_of_text_that_begins_with_numbers_is_no_stray(tmp_path):
    """All rows decide: the first batch alone holds numbers and a text, the first block of the file mostly texts."""
    values = ["7", "b", *["1"] * 20_000, *["a", "c"] * 15_000]
    path = write(tmp_path / "codes.csv", values, beside=np.arange(len(values)) % 2)
    assert kinds(path) == {"x": "category"}
