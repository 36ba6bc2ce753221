"""The benchmark of ingestion, in small."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.ingestion import main, turns_of
from tests.concurrency.processes import REPOSITORY, environment

pytestmark = pytest.mark.deep


def test_turns_of_two_seeds_are_all_different() -> None:
    texts = [turn.text for turn in [*turns_of(50, 80, 1), *turns_of(50, 80, 2)]]
    assert len(set(texts)) == 100
    assert all(80 <= len(text) <= 100 for text in texts)


def test_ingestion_in_small_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--turns", "5", "--chars", "80", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["turn"]["per_second"] > 0
    assert report["cpu_ms"] > 0
    assert report["disk"] > 1


def test_ingestor_in_small_has_turns_and_signals() -> None:
    command = [sys.executable, "-m", "benchmarks.ingestion", "--ingestor", "--json", "--turns", "20", "--pairs", "2"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment(), check=False)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["turn"]["per_second"] > 0
    assert report["signals"]["everything"]["ms"] > 0
