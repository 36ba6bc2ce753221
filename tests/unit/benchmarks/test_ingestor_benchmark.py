"""The benchmark of `MemoryIngestor`, in small."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.concurrency.processes import REPOSITORY, environment

pytestmark = pytest.mark.deep


def test_it_measures_every_operation_and_what_signals_add() -> None:
    command = [sys.executable, "-m", "benchmarks.ingestor", "--json", "--turns", "60", "--chars", "200", "--pairs", "2"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment(), check=False)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert all(report[name]["per_second"] > 0 for name in ("episode", "event", "extraction", "lookup", "window"))
    assert report["signals"]["everything"]["ms"] > 0
