"""The tools and hooks of the main modules work without each feature package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.concurrency.processes import environment

REPOSITORY = Path(__file__).parents[2]
PACKAGES = [
    *("knowledge", "ingestion", "entities", "doctor", "workspace", "cli", "engines", "privacy"),
    *("lifecycle.archive", "lifecycle.backups", "lifecycle.facade", "lifecycle.health", "lifecycle.statistics"),
    *("lifecycle.tidying",),
]


def run_core(folder: Path, *packages: str) -> tuple[dict[str, Any], str]:
    """Run `tests.core_run` with these packages absent; return its report and its log."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.core_run", str(folder / "agents"), *packages],
        env={**environment(), "HOME": str(folder)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(process.stdout)
    return report, process.stderr


def check_report(report: dict[str, Any]) -> None:
    assert len(report["answers"]) == 7
    assert {name: answer for name, answer in report["answers"].items() if answer is not True} == {}
    assert report["found"] == 1


@pytest.mark.parametrize("package", PACKAGES)
def test_tools_work_without_package(package: str, tmp_path: Path) -> None:
    report, log = run_core(tmp_path, f"agent_memory.{package}")
    check_report(report)
    assert log == ""


def test_tools_work_without_all_packages(tmp_path: Path) -> None:
    report, log = run_core(tmp_path, *(f"agent_memory.{package}" for package in PACKAGES))
    check_report(report)
    assert log == ""


def test_tools_with_documents_work_without_knowledge(tmp_path: Path) -> None:
    (tmp_path / "agents" / "ann").mkdir(parents=True)
    (tmp_path / "agents" / "ann" / "knowledge.yaml").write_text("")
    report, log = run_core(tmp_path, "agent_memory.knowledge")
    check_report(report)
    assert log == ""
