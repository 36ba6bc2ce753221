"""CPU time that memory adds to a run."""

from __future__ import annotations

import sys
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

import pytest

from benchmarks import host_start

if TYPE_CHECKING:
    from pathlib import Path


def test_host_start_leaves_first_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([90.0, 80.0, 3.0, 1.0, 5.0, 1.0, 4.0, 2.0])
    monkeypatch.setattr(host_start, "measure_run", lambda _command, _bundle: next(seconds))
    assert host_start.measure(["host"], ("a", "b"), 3) == {"with": 4.0, "without": 1.0, "added": 3.0}


def test_host_start_runs_command_with_bundle(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        "import pathlib, sys; pathlib.Path(sys.argv[1], sys.argv[3]).touch(); sys.exit(sys.argv[3] == 'b')"
    )
    assert host_start.measure_run([sys.executable, str(script), str(tmp_path)], "a") >= 0
    assert (tmp_path / "a").exists()
    with pytest.raises(CalledProcessError):
        host_start.measure_run([sys.executable, str(script), str(tmp_path)], "b")


@pytest.mark.parametrize(("deaths", "fails"), [(2, False), (3, True)])
def test_host_start_repeats_runs_that_died_of_a_signal(tmp_path: Path, deaths: int, *, fails: bool) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1]); runs = len(path.read_text()) if path.exists() else 0\n"
        "path.write_text('x' * (runs + 1))\n"
        f"runs < {deaths} and os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "runs")]
    if fails:
        with pytest.raises(CalledProcessError):
            host_start.measure_run(command, "a")
    else:
        assert host_start.measure_run(command, "a") >= 0
    assert len((tmp_path / "runs").read_text()) == 3
