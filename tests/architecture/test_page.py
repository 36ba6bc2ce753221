"""docs/architecture.md says what the code is: its packages, its layers, its files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_layers import LAYERS, LIBRARY, REPOSITORY

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return cells[2:]


def test_the_page_lists_every_package_once() -> None:
    listed = [name for row in rows(section("Packages")) for name in re.findall(r"`([a-z_]+)`", row[0])]
    there = {path.name for path in LIBRARY.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in LIBRARY.glob("[!_]*.py")}
    assert sorted(listed) == sorted(there)


def test_the_page_has_the_layers_that_are_held() -> None:
    """To mend it, copy the lines of `LAYERS` into the page."""
    block = section("Imports").partition("```\n")[2].partition("```")[0]
    assert block.splitlines() == [", ".join(names) for names in LAYERS]


def test_what_the_table_of_changes_names_is_there() -> None:
    table = rows(section("Where does the next thing go"))
    text = " ".join(cell for row in table for cell in row)
    named = set(re.findall(r"`([\w./-]+(?:/|\.(?:py|md|toml|yaml)))`", text))
    missing = [name for name in named if not (LIBRARY / name).exists() and not (REPOSITORY / name).exists()]
    assert missing == []
    assert len(named) > 20


def test_the_glossary_defines_each_word_once() -> None:
    table = rows((REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8"))
    words = [word.strip() for row in table for word in row[0].split(",")]
    assert len(words) > 40
    assert sorted(words) == sorted(set(words))
