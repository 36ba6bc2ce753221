"""Tests go in by the public way: no private name of an object, few replacements that are spelled out in a string."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.architecture.test_layers import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS: Final = Path(__file__).parents[1]

MAY_LOOK_INSIDE: Final = {"contract", "power"}
"""Folders: a new kind and a new engine are put in where no caller could, and a disk is recorded from within."""
PUBLIC: Final = {"_asdict", "_replace", "_exit", "_getframe", "_fields"}
"""Names with an underscore that Python's documentation offers."""
ALLOWED: Final = {
    "hostile/inside.py migration._STUCK_SECONDS",  # a program of its own: a stuck engine must not cost it 20 s
    "unit/memory/test_races.py service.pad.manager.lock._acquire",  # a lock that is never released, as by a thread
    # that did not survive a fork
}
OWN: Final = {"self", "cls"}
MOST_STRING_PATCHES: Final = 10


def files() -> Iterator[Path]:
    yield from (path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] not in MAY_LOOK_INSIDE)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def _reaches(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and ast.unparse(node.value) not in OWN:
            yield f"{path.relative_to(TESTS)} {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            yield from (
                f"{path.relative_to(TESTS)} imports {alias.name}" for alias in node.names if _is_private(alias.name)
            )


def _string_patches(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"setattr", "delattr", "patch"}:
            named = node.args[0] if node.args else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str) and "." in named.value:
                yield f"{path.relative_to(TESTS)}:{node.lineno} {named.value}"


def test_no_test_reaches_for_a_private_name() -> None:
    assert {reach for path in files() for reach in _reaches(path)} == ALLOWED


def test_few_names_are_replaced_by_a_dotted_string() -> None:
    patched = [patch for path in files() for patch in _string_patches(path)]
    assert len(patched) <= MOST_STRING_PATCHES, patched
