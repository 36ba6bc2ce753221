"""The tools and hooks of the main modules work without each feature package."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.core_run import MAIN_MODULES
from tests.fork_server import CommandForker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = [
    *("knowledge", "workspace", "care", "engines", "compat", "cli"),
    *("knowledge.entities", "knowledge.intake", "knowledge.pipeline", "care.checks", "care.archive", "care.backups"),
    *("care.privacy", "care.statistics", "care.tidying", "care.account"),
]


@pytest.fixture(scope="module")
def forker() -> Iterator[CommandForker]:
    forker = CommandForker(*MAIN_MODULES, "amplifier_core", "agent_memory.redaction.detection", "numpy")
    yield forker
    forker.close()


def check_core(forker: CommandForker, folder: Path, *packages: str) -> None:
    """Run `tests.core_run` with these packages absent; check that each tool answers and the log is empty."""
    words = ["tests.core_run", str(folder / "agents"), *(f"agent_memory.{package}" for package in packages)]
    process = forker.run(words, {**os.environ, "HOME": str(folder)})
    assert (process.returncode, process.stderr) == (0, ""), packages
    report: dict[str, Any] = json.loads(process.stdout)
    assert len(report["answers"]) == 7
    assert {name: answer for name, answer in report["answers"].items() if answer is not True} == {}, packages
    assert report["found"] == 1, packages


def test_absent_packages_are_packages_of_the_library() -> None:
    assert [package for package in PACKAGES if find_spec(f"agent_memory.{package}") is None] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_tools_work_without_package(package: str, forker: CommandForker, tmp_path: Path) -> None:
    check_core(forker, tmp_path, package)


def test_tools_work_without_all_packages(forker: CommandForker, tmp_path: Path) -> None:
    check_core(forker, tmp_path, *PACKAGES)


def test_tools_with_documents_work_without_knowledge(forker: CommandForker, tmp_path: Path) -> None:
    (tmp_path / "agents" / "ann").mkdir(parents=True)
    (tmp_path / "agents" / "ann" / "knowledge.yaml").write_text("")
    check_core(forker, tmp_path, "knowledge")
