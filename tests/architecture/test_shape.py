"""Limits of shape: counts of style violations, names that occur twice, files of a capability, calls of a store.

Every limit is a ratchet: it may only fall.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.architecture.style_counts import count_violations
from tests.architecture.test_layers import LIBRARY, parsed
from tests.concurrency.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

MAX_VIOLATIONS: Final = {
    "argument in two words": 19,
    "class name twice": 1,
    "class of one word": 136,
    "clause as first line": 2,
    "function without verb": 96,
    "listed word": 34,
    "long first line": 14,
    "module in -ing": 3,
    "module name twice": 48,
    "vague name": 98,
    "whether": 0,
}
MAX_NAMES_TWICE: Final = 0
"""Files of one top-level package that share their name."""
MAX_CLASSES_TWICE: Final = 1
"""Public classes that share their name: `Memory`, the client and the record."""
MAX_FOLDER_FILES: Final = 8
"""Python files of a folder below a top-level package, without `__init__.py`."""
MAX_CALLS: Final = {"store": (420, 73, 9), "search": (295, 64, 4)}
"""Named functions without redaction, files and thread switches of a tool's call."""


@pytest.fixture(scope="module")
def violations() -> Counter[str]:
    return count_violations()


@pytest.mark.parametrize("rule", MAX_VIOLATIONS)
def test_style_violations_do_not_grow(rule: str, violations: Counter[str]) -> None:
    assert violations[rule] <= MAX_VIOLATIONS[rule]


def test_style_violations_are_all_counted(violations: Counter[str]) -> None:
    assert set(violations) == set(MAX_VIOLATIONS)


def list_files() -> list[Path]:
    return [path for path in sorted(LIBRARY.rglob("*.py")) if path.name != "__init__.py"]


def test_file_names_are_unique_within_their_package() -> None:
    names = Counter(
        (path.relative_to(LIBRARY).parts[0], path.name) for path in list_files() if path.name != "__main__.py"
    )
    assert sum(number > 1 for number in names.values()) <= MAX_NAMES_TWICE


def test_public_classes_have_names_of_their_own() -> None:
    names = Counter(
        node.name
        for path in list_files()
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sum(number > 1 for number in names.values()) <= MAX_CLASSES_TWICE


def test_a_capability_has_few_files() -> None:
    folders: defaultdict[Path, int] = defaultdict(int)
    for path in list_files():
        if len(path.relative_to(LIBRARY).parts) > 2:
            folders[path.parent] += 1
    assert max(folders.values()) <= MAX_FOLDER_FILES


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("calls")
    command = [sys.executable, "-m", "tests.architecture.call_counts", str(folder)]
    process = subprocess.run(
        command, env={**environment(), "HOME": str(folder)}, capture_output=True, text=True, check=True
    )
    counts: dict[str, Any] = json.loads(process.stdout)
    return counts


@pytest.mark.parametrize("act", MAX_CALLS)
def test_a_tool_call_crosses_few_functions(act: str, calls: dict[str, Any]) -> None:
    functions, files, switches = MAX_CALLS[act]
    assert 0 < calls[act]["functions"] <= functions
    assert calls[act]["files"] <= files
    assert calls[act]["switches"] <= switches
