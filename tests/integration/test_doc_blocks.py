"""Commands and programs of the README, tutorials and how-tos run as printed, each page in a fresh home.

A `console` block has commands after `$ ` and, below each, lines of its output in their order; `…` stands for more
lines. IDs, dates and times may differ. A block that cannot run here begins with `# not run in tests: REASON`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import build

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [
    HERE / "README.md",
    *sorted((HERE / "docs" / "tutorials").glob("*.md")),
    *sorted((HERE / "docs" / "how-to").glob("*.md")),
]
RUN: Final = {"console", "python"}
NOT_RUN: Final = "# not run in tests: "
MAX_NOT_RUN: Final = 10
_BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_ID: Final = re.compile(r"\b(?:mem|res|cnd|top|ent|epi|imp)-[0-9a-f]{12}\b")
_VARIES: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}|[+-]\d{4}\b|\b\d{8}T\d{6}Z?|[\d.,]+ (?:ms|s|kB|MB|GB|bytes)\b"
)
_SHELL: Final = set("|<>;&`$(){}*")


class Step(NamedTuple):
    """A command with the printed lines of its output and its exit code."""

    command: str
    lines: list[str]
    code: int


def find_blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield language and text of each fenced block."""
    yield from ((match[2], dedent(match[3])) for match in _BLOCK.finditer(page.read_text(encoding="utf-8")))


def parse_steps(block: str) -> Iterator[Step]:
    """Yield the commands of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            line, _, output = output.partition("\n")
            command += "\n" + line
        code = re.search(r"  # exit code (\d+)$", command)
        text = command[: code.start()] if code else command
        yield Step(text, [line for line in output.splitlines() if line.strip()], int(code[1]) if code else 0)


class PageRunner:
    """Runs the steps of a page and maps the printed IDs to the real ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: dict[str, str] = {}

    def run(self, step: Step) -> None:
        """Run a command and compare its output with the printed lines."""
        command = _ID.sub(lambda match: self.ids.get(match[0], match[0]), step.command)
        code, output = self._run_command(command)
        assert code == step.code, f"$ {command}\n{output}"
        self._compare(step, output)

    def _run_command(self, command: str) -> tuple[int, str]:
        if command.startswith("agent-memory ") and not _SHELL & set(re.sub(r"'[^']*'", "", command)):
            result = CliRunner().invoke(build(), shlex.split(command)[1:], prog_name="agent-memory")
            return result.exit_code, result.output
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True,
            text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def _compare(self, step: Step, output: str) -> None:
        actual = iter(output.splitlines())
        for line in step.lines:
            if line.strip() == "…":
                continue
            found = next((real for real in actual if self._simplify(real) == self._simplify(line)), None)
            assert found is not None, f"$ {step.command}\nnot printed: {line}\nprinted:\n{output}"
            self.ids |= dict(zip(_ID.findall(line), _ID.findall(found), strict=True))

    def _simplify(self, line: str) -> str:
        text = _VARIES.sub("N", _ID.sub("ID", line.replace(str(Path.home()), "~")))
        return " ".join(text.split())


@pytest.mark.model
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_blocks_run_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    runner = PageRunner(folder)
    for language, text in find_blocks(page):
        if text.startswith(NOT_RUN):
            continue
        if language == "console":
            for step in parse_steps(text):
                runner.run(step)
        elif language == "python":
            exec(compile(text, page.name, "exec"), {"__name__": "__main__"})


def test_blocks_that_do_not_run_are_few_and_give_a_reason() -> None:
    skipped = [text for page in PAGES for _, text in find_blocks(page) if text.startswith("# not run")]
    assert all(re.match(rf"{NOT_RUN}\w", text) for text in skipped)
    assert len(skipped) <= MAX_NOT_RUN


def test_every_block_names_its_language() -> None:
    blocks = [block for page in PAGES for block in find_blocks(page)]
    assert {language for language, _ in blocks} <= RUN | {"", "yaml", "json", "text", "toml"}
    assert [text.splitlines()[0][:9] for language, text in blocks if not language] == ["make demo"]  # `.ci/run` runs it
