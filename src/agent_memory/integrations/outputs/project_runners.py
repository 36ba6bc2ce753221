"""Programs that run what the project declares: builds, tests, scripts."""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.integrations.outputs.project_paths import ProjectPaths
    from agent_memory.integrations.outputs.shell_words import ShellWord

_RUNNERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("black", "cmake", "ctest", "eslint", "flake8", "g++", "gcc", "gradle", "gradlew", "isort", "jest", "just",
         "make", "mocha", "mypy", "ninja", "nox", "phpunit", "pylint", "pyright", "pytest", "rspec", "ruff",
         "shellcheck", "tox", "tsc", "vitest", "yamllint"),
        frozenset(),
    ),
    "bun": frozenset({"run", "test"}),
    "cargo": frozenset({"bench", "build", "check", "clippy", "fmt", "run", "test"}),
    "composer": frozenset({"test"}),
    "dotnet": frozenset({"build", "format", "run", "test"}),
    "go": frozenset({"build", "fmt", "test", "vet"}),
    "helm": frozenset({"lint", "template"}),
    "mix": frozenset({"compile", "format", "test"}),
    "mvn": frozenset({"compile", "package", "test", "verify"}),
    "npm": frozenset({"ls", "run", "t", "test"}),
    "pnpm": frozenset({"run", "test"}),
    "swift": frozenset({"build", "test"}),
    "yarn": frozenset({"run", "test"}),
    "terraform": frozenset({"fmt", "validate"}),
    "zig": frozenset({"build", "test"}),
}  # fmt: skip
"""Programs that run what the project declares, by their verbs; empty if they have none."""
_RUN_OPTION: Final = re.compile(
    r"--|-[A-DF-Za-df-z]+[\d.]*(=\S*)?|-race|--(all|all-features|all-targets|build|check|collect-only|cov|cov-report"
    r"|coverage|deselect|diff|durations|exitfirst|ff|fix|ignore|ignore-missing-imports|jobs|keep-going|last-failed|lf"
    r"|lib|line-length|maxfail|nocapture|noEmit|no-cov|no-fail-fast|no-header|no-run|offline|output-format"
    r"|output-on-failure|package|parallel|quiet|release|run|runInBand|select|silent|stacktrace|statistics|strict|tb"
    r"|target|test|testNamePattern|verbose|version|watch|workspace)(=.*)?"
)
"""Option of a runner: none takes code (`-e`, `--eval`, `-exec`), a program or the name of a configuration."""
_QUIET: Final = frozenset({"-q", "--quiet", "-s", "--silent"})
"""Options that may stand before a verb."""
_FOLDER_OPERANDS: Final = frozenset({"go", "helm"})
"""Runners whose operand is remote unless it begins with a dot."""
_INTERPRETERS: Final = frozenset({"node", "php", "python", "python3"})
_MODULES: Final = frozenset({"compileall", "coverage", "doctest", "json.tool", "mypy", "pytest", "ruff", "unittest"})
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=[\w.,/-]*")
"""Variable of the environment or of make, with a plain value."""
_IS_ASSIGNED: Final = re.compile(r"\w+=")
_ENVIRONMENT_OR_CODE: Final = frozenset({"-", "env"})
"""Arguments that print the environment (`npm run env`) or read a program from the input."""


def is_runner(program: str) -> bool:
    """Return True if a program runs what the project declares."""
    return program in _RUNNERS or program in _INTERPRETERS


def runs_project(program: str, arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if a runner gets only what the project declares."""
    texts = [word.text for word in arguments]
    if not all(map(paths.is_argument_inside, arguments)) or not _ENVIRONMENT_OR_CODE.isdisjoint(texts):
        return False
    if program in _INTERPRETERS:
        return _runs_file_or_module(texts, paths)
    verbs = _RUNNERS[program]
    texts = list(dropwhile(_QUIET.__contains__, texts))
    if verbs and (not texts or texts[0] not in verbs):
        return False
    is_dotted = all(text.startswith((".", "-")) for text in texts[1:])
    return (program not in _FOLDER_OPERANDS or is_dotted) and _has_plain_options(texts, paths)


def _runs_file_or_module(texts: list[str], paths: ProjectPaths) -> bool:
    """Return True if an interpreter runs a file or a known module."""
    if texts[:1] != ["-m"]:
        return texts == ["--version"] or bool(texts and not texts[0].startswith("-"))
    module = "".join(texts[1:2])
    if module in _MODULES:
        return _has_plain_options(texts[2:], paths)
    places = [f"{base}{module.replace('.', '/')}{end}" for base in ("", "src/") for end in ("", ".py")]
    return bool(module) and any((paths.folder / place).exists() and paths.is_inside(place) for place in places)


def _has_plain_options(texts: list[str], paths: ProjectPaths) -> bool:
    """Return True if all options and variables are plain and inside."""
    options = [text for text in texts if text.startswith("-")]
    attached = (text[start:] for text in options if text[1:2] != "-" for start in range(2, len(text)))
    variables = (text for text in texts if _IS_ASSIGNED.match(text))
    return (
        all(map(_RUN_OPTION.fullmatch, options))
        and all(map(ASSIGNMENT.fullmatch, variables))
        and all(map(paths.is_word_inside, attached))
    )
