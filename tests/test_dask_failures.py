"""What a fit on a Dask cluster listens on, and how it ends when the cluster or the user ends it."""

import os
import signal
import subprocess
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import scne

pytest.importorskip("distributed")
from dask_processes import (
    dask_processes,
    descendants,
    free_port,
    listening_addresses,
    start_fit,
    wait_until,
)

from scne.estimators import ClusterError, without_password

SMALL = ("--nodes", "6", "--networks", "2", "--tuning", "0")
# Most of the time goes into the sums, and every range of rows is kept.
LONG = ("--nodes", "200", "--networks", "4", "--tuning", "0", "--search-rows", "3000", "--scaling", "standard")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")

    def write(n):
        path = folder / f"{n}.parquet"
        if not path.exists():
            rng = np.random.default_rng(0)
            X = rng.uniform(-2, 2, (n, 4))
            y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
            names = ["a_one", "a_two", "b_one", "b_two"]
            table = pa.table({name: X[:, k] for k, name in enumerate(names)} | {"y": y})
            pq.write_table(table, path, row_group_size=20_000)
        return path

    return write


def ended(process, seconds=60):
    """Exit status and standard error."""
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in errors, errors
    assert " - distributed." not in errors, errors
    return process.returncode, errors


@pytest.mark.slow
def test_a_local_cluster_listens_on_the_loopback_only(rows, tmp_path):
    process = start_fit(rows(20_000), tmp_path / "m.scne", *SMALL, "--dask", "local")
    seen = set()
    while process.poll() is None:
        seen |= listening_addresses(process.pid)
        time.sleep(0.05)
    status, errors = ended(process)
    assert status == 0, errors
    # The scheduler and its nannies here, and the workers: nothing was missed.
    assert len({pid for pid, _ in seen}) >= 2
    assert {address for _, address in seen} == {"127.0.0.1"}


def test_passwords_are_not_shown(rows, tmp_path):
    process = start_fit(rows(1_000), tmp_path / "m.scne", "--dask", f"tcp://me:secret@127.0.0.1:{free_port()}")
    status, errors = ended(process)
    assert status == 1
    assert "no Dask scheduler answers" in errors
    assert "secret" not in errors
    assert without_password("tls://me:secret@host:1?token=2") == "tls://host:1"


@pytest.mark.slow
def test_a_cluster_without_workers_is_waited_for_and_given_up(rows, tmp_path):
    with dask_processes(0) as cluster:
        begun = time.monotonic()
        process = start_fit(rows(20_000), tmp_path / "m", *SMALL, "--dask", cluster.address, DASK_SCNE__WAIT="6")
        status, errors = ended(process)
        assert status == 1
        assert f"The Dask scheduler at {cluster.address} has no workers; waiting at most 6 s" in errors
        assert f"The Dask scheduler at {cluster.address} had no workers for 6 s." in errors
        assert "DASK_SCNE__WAIT" in errors
        assert time.monotonic() - begun < 40
        # Workers that come in time are used.
        process = start_fit(rows(20_000), tmp_path / "m", *SMALL, "--dask", cluster.address)
        line = process.stderr.readline()
        assert "has no workers; waiting at most 60 s" in line
        # A client only connects.
        assert listening_addresses(process.pid) == set()
        cluster.add_worker()
        assert ended(process)[0] == 0


@pytest.mark.slow
def test_python_hears_the_same(rows):
    import dask
    from distributed import Client

    model = scne.RVFLRegressor(20, random_state=0)
    files = scne.open_rows(rows(20_000), target="y")
    with dask_processes(0) as cluster, Client(cluster.address, timeout=5) as client:
        with (
            dask.config.set({"scne.wait": "5s"}),
            pytest.warns(scne.ScneWarning, match="has no workers"),
            pytest.raises(ClusterError, match=f"{cluster.address} had no workers for 5 s"),
        ):
            model.fit(files, client=client)
        with dask.config.set({"scne.wait": "soon"}), pytest.raises(ClusterError, match=r"scne.wait .* is 'soon'"):
            model.fit(files, client=client)
        cluster.kill_scheduler()
        warnings.simplefilter("ignore", scne.ScneWarning)
        with pytest.raises(ClusterError, match=r"was lost|has lost its scheduler"):
            model.fit(files, client=client)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["connected", "sample", "sums"])
def test_a_killed_scheduler_is_named_with_what_was_kept(rows, tmp_path, moment):
    """Killed in the first pass, in the search, and while rows are summed."""
    data, kept = rows(200_000), tmp_path / "kept"
    options = (*LONG, "--checkpoint", str(kept), "--verbose")
    with dask_processes(1) as cluster:
        process = start_fit(data, tmp_path / "m", *options, "--dask", cluster.address, SCNE_CHECKPOINT_SECONDS="0")
        if moment == "connected":
            wait_until(lambda: established(process.pid, cluster.address), "the fit is connected")
        else:
            wait_until(lambda: list(kept.rglob(f"{moment}.stage")), f"{moment} is kept")
        cluster.kill_scheduler()
        status, errors = ended(process)
    assert status == 1
    lost = f"The connection to the Dask scheduler at {cluster.address} was lost;" in errors
    if moment == "connected":
        # It may still be shaking hands.
        assert "There was no progress to keep yet" in errors if lost else "no Dask scheduler answers" in errors
        return
    assert lost
    assert f"Its progress is kept in {str(kept)!r}" in errors
    assert "Run the same command or fit again to resume" in errors
    assert not (tmp_path / "m").exists()
    # The same fit, here: a checkpoint does not care where its sums were computed.
    process = start_fit(data, tmp_path / "m", *options)
    status, errors = ended(process, 120)
    assert status == 0, errors
    assert "pass 1 of 2" not in errors
    assert not kept.exists()


def established(pid, address):
    port = int(address.rpartition(":")[2])
    connections = psutil.Process(pid).net_connections(kind="inet")
    return any(connection.raddr and connection.raddr.port == port for connection in connections)


@pytest.mark.slow
def test_workers_that_die_again_and_again(tmp_path):
    import dask.array as da
    from distributed import Client

    def deadly(block):
        import os

        os._exit(1)

    X = da.ones((2_000, 2), chunks=(500, 2)).map_blocks(deadly, dtype=float, meta=np.empty((0, 0)))
    # Between two deaths the cluster may have no worker for some seconds.
    warnings.simplefilter("ignore", scne.ScneWarning)
    with (
        dask_processes(2) as cluster,
        Client(cluster.address, timeout=5) as client,
        pytest.raises(ClusterError, match="died repeatedly"),
    ):
        scne.RVFLRegressor(5, random_state=0).fit(X, np.ones(2_000), client=client)


def certificates(folder):
    """A certificate authority and one certificate that it signed, for all parts of a cluster."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "request", "-subj", "/CN=dask")
    openssl(
        "x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "cert.pem"
    )
    return folder / "ca.pem", folder / "cert.pem", folder / "key.pem"


@pytest.mark.slow
def test_certificates_of_dasks_configuration_are_used(rows, tmp_path):
    ca, cert, key = certificates(tmp_path)
    settings = {
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(ca),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": str(cert),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": str(key),
    }
    required = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    files = ("--tls-ca-file", str(ca), "--tls-cert", str(cert), "--tls-key", str(key))
    out, kept = tmp_path / "m.scne", tmp_path / "kept"
    with dask_processes(1, *files, protocol="tls") as cluster:
        options = (*SMALL, "--dask", cluster.address)
        status, errors = ended(start_fit(rows(20_000), out, *options, "--checkpoint", str(kept), **settings))
        assert status == 0, errors
        # A local cluster obeys the same configuration: without certificates for its parts it does not start.
        status, errors = ended(start_fit(rows(20_000), out, *SMALL, "--dask", "local", **settings, **required))
        assert status == 1
        assert "--dask is 'local'" in errors
        parts = {f"DASK_DISTRIBUTED__COMM__TLS__{part}__CERT": str(cert) for part in ("SCHEDULER", "WORKER")}
        parts |= {f"DASK_DISTRIBUTED__COMM__TLS__{part}__KEY": str(key) for part in ("SCHEDULER", "WORKER")}
        everywhere = {**settings, **required, **parts}
        status, errors = ended(start_fit(rows(20_000), out, *SMALL, "--dask", "local", **everywhere))
        assert status == 0, errors
        # Without a certificate, or with one of another authority, nobody gets in.
        status, errors = ended(start_fit(rows(20_000), out, *options))
        assert status == 1
        assert "distributed.comm.tls" in errors
        (tmp_path / "other").mkdir()
        foreign = certificates(tmp_path / "other")
        settings |= dict(zip(settings, map(str, foreign), strict=True))
        status, errors = ended(start_fit(rows(20_000), out, *options, **settings))
        assert status == 1
        assert "distributed.comm.tls" in errors
    content = out.read_bytes()
    for secret in (cluster.address, str(key), str(cert)):
        assert secret.encode() not in content


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("share", np.linspace(0.05, 0.95, 8).round(2).tolist())
def test_a_stopped_fit_leaves_no_process_behind(rows, tmp_path, number, share):
    """At any moment, as a terminal does it: Ctrl-C goes to every process of the group."""
    seconds = seconds_of_a_fit(rows)
    process = start_fit(rows(200_000), tmp_path / "m", *LONG, "--dask", "local")
    # From the first process of the cluster on: before that nothing of Dask runs.
    wait_until(lambda: descendants(process.pid), "the cluster starts")
    time.sleep(share * seconds)
    workers = descendants(process.pid)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    status, errors = ended(process, 60)
    # After the fit there is nothing to stop: then the signal ends the process as it does by default.
    assert status in (0, 128 + number, -number)
    assert status != 128 + number or "Stopped by" in errors
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []


@cache
def seconds_of_a_fit(rows):
    with tempfile.TemporaryDirectory() as folder:
        process = start_fit(rows(200_000), Path(folder) / "m", *LONG, "--dask", "local")
        wait_until(lambda: descendants(process.pid), "the cluster starts")
        begun = time.monotonic()
        assert ended(process, 120)[0] == 0
        return time.monotonic() - begun
