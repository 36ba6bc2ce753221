"""docs/maintainers/attacks.md names every attack that is a test, once, under its file, and no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.architecture.test_layers import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS: Final = Path(__file__).parents[1]
PAGE: Final = (TESTS.parent / "docs" / "maintainers" / "attacks.md").read_text(encoding="utf-8")
OUTCOMES: Final = r"(?:held|refused|as data)\b|\*\*not stopped\*\*"
LEAST: Final = 80


def list_marked() -> Iterator[tuple[str, str]]:
    """Yield file and name of each attack, from the marks of tests and cases."""
    for path in sorted((TESTS / "hostile").glob("test_*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"attack", "tried"}:
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{path.name}:{node.lineno} has no literal name"
                yield f"tests/hostile/{path.name}", str(name.value)


def list_documented() -> Iterator[tuple[str, str, str]]:
    """Yield file, name and outcome of each line of the page."""
    for section in PAGE.split("\n### ")[1:]:
        (file,) = re.findall(r"^`(tests/hostile/\w+\.py)`", section, re.MULTILINE)
        for name, outcome in re.findall(
            r"^- `([a-z0-9-]+)`: .+? \(((?:held|refused|as data|\*\*not stopped).*)\)$", section, re.MULTILINE
        ):
            yield file, name, outcome


def test_page_has_the_attacks_of_the_tests() -> None:
    assert sorted((file, name) for file, name, _ in list_documented()) == sorted(list_marked())
    assert len([*list_marked()]) >= LEAST


def test_name_of_an_attack_is_unique() -> None:
    assert [name for name, times in Counter(name for _, name in list_marked()).items() if times > 1] == []


def test_each_line_says_what_happens() -> None:
    assert [name for _, name, outcome in list_documented() if not re.match(OUTCOMES, outcome)] == []


def test_mark_belongs_to_a_test_or_case() -> None:
    for path in sorted((TESTS / "hostile").glob("test_*.py")):
        tree = parsed(path)
        decorators = {
            id(node)
            for each in ast.walk(tree)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_")
            for decorator in each.decorator_list
            for node in ast.walk(decorator)
        }
        lists = {
            id(node)
            for each in tree.body
            if isinstance(each, ast.Assign | ast.AnnAssign) and isinstance(each.value, ast.List)
            for node in ast.walk(each.value)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"attack", "tried"}:
                assert id(node) in decorators | lists, f"{path.name}:{node.lineno}"
