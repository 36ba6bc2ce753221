"""`python -m scripts.mutants`: which faults it puts into code, and that it finds them again after code has moved."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from scripts.mutants.__main__ import find_tests
from scripts.mutants.changing import Mutant, find, survey

REPOSITORY = Path(__file__).resolve().parents[2]
CODE = '''
def first_above(limit, values):
    """Return the first value above the limit."""
    for value in values:
        if value > limit:
            return value
    return None
'''


def surveyed(tree: Path, **files: str) -> list[Mutant]:
    """Return the mutants of the files, named without their ending; two underscores stand for a folder."""
    for name, text in files.items():
        file = tree / "src" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    return survey(tree, ["src"])


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("x = a < b", {("comparison", "x = a <= b")}),
        ("x = a is b", {("comparison", "x = a is not b")}),
        ("x = a and b", {("and, or", "x = a or b")}),
        ("x = not a", {("not removed", "x = a")}),
        ("x = 5", {("constant", "x = 6"), ("constant", "x = 4")}),
        ("x = True", {("boolean", "x = False")}),
        ("sync(file)", {("call removed", "pass")}),
        ("raise KeyError", {("raise removed", "pass")}),
        ("if a < b:\n  'x'", {("comparison", "if a <= b:"), ("condition negated", "if not a < b:")}),
        ("if a == b:\n  'x'", {("comparison", "if a != b:")}),
        ("x = [y for y in z if y]", {("condition negated", "x = [y for y in z if not y]")}),
        ("def f(a, *, b=False):\n  return a", {("default", "def f(a, *, b=True):"), ("return None", "return None")}),
        ("try:\n  'x'\nexcept A:\n  log()", {("exception swallowed", "except A:\n    pass"), ("call removed", "pass")}),
        ("if TYPE_CHECKING:\n  x = 5", set()),
        ("def f(a: X[1]) -> Y[2]:\n  'Say it.'", set()),
    ],
)
def test_each_kind_of_change_is_made_where_code_runs(tmp_path: Path, code: str, mutants: set[tuple[str, str]]) -> None:
    assert {(mutant.kind, mutant.changed) for mutant in surveyed(tmp_path, a=code)} == mutants


def test_a_mutant_is_the_whole_file_with_one_change(tmp_path: Path) -> None:
    swapped = next(mutant for mutant in surveyed(tmp_path, a=CODE) if mutant.kind == "comparison")
    assert swapped.source().splitlines()[3] == "        if value >= limit:"
    assert "-        if value > limit:\n+        if value >= limit:" in swapped.diff()
    assert swapped.new not in swapped.place.parent.ops


def test_all_are_found_again_in_another_file_under_another_name(tmp_path: Path) -> None:
    before = surveyed(tmp_path / "before", old__a=CODE, old__b="x = not y")
    after = surveyed(tmp_path / "after", new__z="z = 3\n" + CODE.replace("first_above", "earliest"), new__b="x = not y")
    found = find([mutant.record for mutant in before], after)
    assert [(mutant.changed, same) for _, mutant, same in found if mutant] == [(each.changed, True) for each in before]


def test_of_equal_ones_each_is_found_in_its_own_file_and_in_its_order(tmp_path: Path) -> None:
    twice = "def f(a):\n  if a:\n    return False\n  g()\n  return False"
    before = surveyed(tmp_path / "before", p__a=twice, p__b=twice)
    after = surveyed(tmp_path / "after", p__b="x = 1\n" + twice, q__a=twice, q__c=twice)
    found = {(was["path"], was["line"]): mutant for was, mutant, _ in find([each.record for each in before], after)}
    assert {
        place: (mutant.path, mutant.lines.start) for place, mutant in found.items() if mutant and place[1] != 2
    } == {
        ("src/p/a.py", 3): ("src/q/a.py", 3),
        ("src/p/a.py", 4): ("src/q/a.py", 4),
        ("src/p/a.py", 5): ("src/q/a.py", 5),
        ("src/p/b.py", 3): ("src/p/b.py", 4),
        ("src/p/b.py", 4): ("src/p/b.py", 5),
        ("src/p/b.py", 5): ("src/p/b.py", 6),
    }


def test_for_a_rewritten_statement_the_nearest_of_its_kind_stands_in(tmp_path: Path) -> None:
    before = [mutant.record for mutant in surveyed(tmp_path / "before", a=CODE) if mutant.kind == "comparison"]
    rewritten = CODE.replace("value > limit", "limit < value")
    after = surveyed(tmp_path / "after", a="x = value > limits\n" + rewritten + "    return limit < 0\n")
    ((_, mutant, same),) = find(before, after)
    assert (mutant.changed, same) == ("if limit <= value:", False)
    assert find(before, [mutant for mutant in after if mutant.kind == "constant"]) == [(before[0], None, False)]


def test_a_common_statement_of_unrelated_code_is_not_taken_for_the_same(tmp_path: Path) -> None:
    before = [mutant.record for mutant in surveyed(tmp_path / "before", p__a="def f():\n  return False")]
    after = surveyed(tmp_path / "after", q__b="def g():\n  return False\ndef h():\n  return False")
    assert [same for _, _, same in find(before, after)] == [False, False]


def test_a_short_statement_counts_as_moved_only_if_its_function_is_nowhere_else(tmp_path: Path) -> None:
    before = [mutant.record for mutant in surveyed(tmp_path / "before", a="def f():\n  close()")]
    moved = surveyed(tmp_path / "moved", a="def g():\n  close()")
    another = surveyed(tmp_path / "another", a="def f():\n  self.close()\ndef g():\n  close()")
    assert [(mutant.function, same) for _, mutant, same in find(before, moved) if mutant] == [("g", True)]
    assert [(mutant.function, same) for _, mutant, same in find(before, another) if mutant] == [("f", False)]


@dataclasses.dataclass
class Tool:
    """The commands, in a checkout with one function and its test."""

    tree: Path

    def __call__(self, *words: str, status: int = 0) -> str:
        command = [sys.executable, "-m", "scripts.mutants", *words]
        done = subprocess.run(command, check=False, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stderr
        return done.stdout

    def run(self, test: str, out: str, *more: str) -> dict[str, str]:
        """Judge with that test; return each change with its verdict."""
        (self.tree / "tests" / "test_a.py").write_text(f"from a import first_above\n\n{dedent(test)}")
        places = ("--tree", str(self.tree), "--list", str(self.tree / "list"), "--out", str(self.tree / out))
        self("run", *places, *more, "--ignore", "--tests", "tests")
        results = json.loads((self.tree / out).read_text())["mutants"]
        return {result["changed"]: result["verdict"] for result in results}


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    for folder in ("src", "tests", "modules"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\nmarkers = deep\n")
    (tmp_path / "src" / "a.py").write_text(CODE)
    tool = Tool(tmp_path)
    (tmp_path / "list").write_text(tool("generate", "--tree", str(tmp_path), "src"))
    return tool


def test_what_no_test_notices_survives_and_one_killed_before_is_reported(tool: Tool) -> None:
    strict = """
        def test_first():
            assert first_above(1, [1, 2, 3]) == 2
        """
    assert tool.run(strict, "base") == {
        "if value >= limit:": "killed",
        "if not value > limit:": "killed",
        "return None": "killed",
    }
    lax = """
        def test_none():
            assert first_above(1, [1, 0]) is None or first_above(1, [2]) == 2
        """
    assert tool.run(lax, "now", "--only-killed-in", str(tool.tree / "base"))["return None"] == "survived"
    assert (tool.tree / "src" / "a.py").read_text() == CODE
    report = tool("compare", str(tool.tree / "base"), str(tool.tree / "now"), status=1)
    assert "+            return None" in report
    assert "'survived': " in report


def test_find_tests_sources_without_tests_named_mirrors_them() -> None:
    sources = ["src/agent_memory/care/tidying", "src/agent_memory/care/agents.py", "src/agent_memory/store"]
    assert find_tests(REPOSITORY, sources) == ["tests/unit/care", "tests/unit/care/tidying", "tests/unit/store"]
    with pytest.raises(SystemExit, match="Name its tests with --tests"):
        find_tests(REPOSITORY, ["src/agent_memory/late.py"])
