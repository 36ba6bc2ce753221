"""Earlier import paths give the modules of the present ones."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from agent_memory.care.archive import Archive
from agent_memory.earlier_name_tables import COMMANDS, MODULES
from scripts.cli_page import list_earlier_names
from tests.rows import check_rows

REPOSITORY = Path(__file__).resolve().parents[2]
PRINTED = (
    "src",
    "modules",
    "plugins",
    "skills",
    "context",
    "agents",
    "behaviors",
    "demo",
    "examples",
    "docs",
    "README.md",
)
SUFFIXES = {".py", ".md", ".yaml", ".json", ".js", ".html"}


@check_rows(("earlier", "present"), MODULES.items())
def test_earlier_path_gives_the_present_module(earlier: str, present: str) -> None:
    module = import_module(earlier)
    assert module is import_module(present)
    assert module.__spec__ is not None
    assert module.__spec__.name == present


def test_module_below_an_earlier_path_is_found() -> None:
    assert import_module("agent_memory.entities.matching.matcher").__name__.startswith("agent_memory.knowledge.")


def test_unknown_module_below_an_earlier_path_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        import_module("agent_memory.entities.no_such")


def test_no_text_advises_an_earlier_command() -> None:
    names = "|".join(map(re.escape, COMMANDS))
    advice = re.compile(rf"agent-memory (?:(?:-a|--agent) \S+ )?({names})(?![\w-])(?! of\b)")
    roots = [REPOSITORY / name for name in PRINTED]
    files = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))]
    wrong = [
        f"{path.relative_to(REPOSITORY)}: {found[0]}"
        for path in files
        if path.is_file() and path.suffix in SUFFIXES
        for found in advice.finditer(path.read_text("utf-8"))
    ]
    assert wrong == []


def test_changelog_lists_every_earlier_name() -> None:
    assert list_earlier_names() in (REPOSITORY / "CHANGELOG.md").read_text("utf-8")


def test_earlier_name_of_archive_package_is_kept() -> None:
    archive = import_module("agent_memory.lifecycle.archive")
    assert archive.open_archive is Archive
