"""The benchmark of imports, in small: figures, and an import that is killed five times."""

from __future__ import annotations

import json

import pytest

from benchmarks.imports import main, measure_process

pytestmark = pytest.mark.deep


def test_imports_in_small_have_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--turns", "12", "--embedder", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["turns"] == 12
    assert report["cpu_ms"] > report["store_ms"] > 0


def test_import_killed_five_times_equals_one_run() -> None:
    figures = measure_process(turns=200, megabytes=2, kills=5)
    assert (figures["equal"], figures["imports"]) == (True, 1)
