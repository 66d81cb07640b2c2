"""A model file appears whole or not at all, and what cannot be stored is refused before anything is written."""

import os
import subprocess
import sys

import numpy as np
import pytest
from altered import with_columns
from ensembles import plain_ensemble
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from scne import RVFLRegressor
from scne.estimators import load_model, save_model
from scne.models import ModelFileError

X = np.random.default_rng(0).uniform(size=(60, 3))
Y = X.sum(axis=1)


@pytest.fixture(scope="module")
def model():
    return RVFLRegressor(5, random_state=0).fit(X, Y)


def test_a_file_is_replaced_and_nothing_else_is_left(model, tmp_path):
    path = tmp_path / "m.scne"
    path.write_bytes(b"old")
    save_model(model, str(path))
    assert np.array_equal(load_model(str(path)).predict(X), model.predict(X))
    assert os.listdir(tmp_path) == ["m.scne"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_file_has_the_permissions_of_any_new_file(model, tmp_path):
    save_model(model, tmp_path / "m.scne")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "m.scne").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_is_followed(model, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.scne").symlink_to(tmp_path / "folder" / "m.scne")
    save_model(model, tmp_path / "link.scne")
    assert (tmp_path / "link.scne").is_symlink()
    load_model(tmp_path / "folder" / "m.scne")


# The limit on a file's size makes the system itself refuse to write on, as a full disk does, in the middle of the file.
FULL_DISK = """
import resource, sys
from scne.estimators import load_model, save_model
from scne.models import ModelFileError
model = load_model(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save_model(model, sys.argv[2])
except ModelFileError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("before", [None, b"what was there before"])
def test_a_disk_without_room_leaves_what_was_there(before, model, tmp_path):
    (tmp_path / "out").mkdir()
    source, path = tmp_path / "source.scne", tmp_path / "out" / "m.scne"
    save_model(model, source)
    assert source.stat().st_size > 1000
    if before is not None:
        path.write_bytes(before)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(source), str(path)], check=True, capture_output=True, text=True
    )
    kept = "nothing was left behind" if before is None else "the file that was there is untouched"
    assert done.stdout == f"{path} cannot be written: file too large ({kept}).\n"
    assert os.listdir(tmp_path / "out") == ([] if before is None else ["m.scne"])
    assert before is None or path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named(model, tmp_path):
    path = tmp_path / "none" / "m.scne"
    with pytest.raises(ModelFileError) as caught:
        save_model(model, path)
    assert str(caught.value) == f"{path} cannot be written: there is no folder {path.parent}."


def test_a_folder_is_not_replaced(model, tmp_path):
    with pytest.raises(ModelFileError, match="it is a folder; give the path of a file"):
        save_model(model, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_a_device_is_not_replaced(model):
    with pytest.raises(ModelFileError, match="it is not an ordinary file"):
        save_model(model, "/dev/null")
    assert not os.path.isfile("/dev/null")


class Mine(RVFLRegressor):
    """A user's own network, which may predict in another way."""


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (LinearRegression(), "it is a LinearRegression, and a model file can hold only SCNERegressor, DNNERegressor, "),
        (Mine(3), "it is a Mine, and a model file can hold only"),
        (plain_ensemble(Mine(3), n_estimators=2), "it is a Mine, and a model file can hold only SCNRegressor, RVFL"),
    ],
)
def test_other_classes_are_refused(other, sentence, tmp_path):
    with pytest.raises(ModelFileError) as caught:
        save_model(other.fit(X, Y), tmp_path / "m.scne")
    expected = f"{tmp_path / 'm.scne'} was not written, because this model cannot be saved: {sentence}"
    assert str(caught.value).startswith(expected)
    assert os.listdir(tmp_path) == []


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(RVFLRegressor(), tmp_path / "m.scne")


def test_what_is_no_plain_value_is_refused_by_name(tmp_path):
    model = RVFLRegressor(3).fit(X, Y)
    with_columns(model, data={"when": np.datetime64("2020-01-01")})
    with pytest.raises(ModelFileError, match=r"data holds .*2020-01-01.*plain values only"):
        save_model(model, tmp_path / "m.scne")


def test_a_system_that_is_not_there_is_not_saved(model, tmp_path):
    save_model(model, tmp_path / "m.scne")
    with pytest.raises(ModelFileError, match="it holds no Gram matrix to save"):
        save_model(load_model(tmp_path / "m.scne"), tmp_path / "again.scne", with_system=True)
    ensemble = plain_ensemble(RVFLRegressor(3), n_estimators=2, solver="matrix-free cg", decorrelation=0.1, ridge=1.0)
    with pytest.raises(ModelFileError, match="it holds no Gram matrix to save"):
        save_model(ensemble.fit(X, Y), tmp_path / "m.scne", with_system=True)
