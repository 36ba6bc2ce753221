"""docs/maintainers/architecture.md says what the code is: its packages, its layers, its files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_layers import LAYERS, LIBRARY, REPOSITORY

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "maintainers" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return cells[2:]


def test_page_lists_every_package_once() -> None:
    listed = [name for row in rows(section("Packages")) for name in re.findall(r"`([a-z_]+)`", row[0])]
    existing = {path.name for path in LIBRARY.iterdir() if (path / "__init__.py").exists()}
    existing |= {path.stem for path in LIBRARY.glob("[!_]*.py")}
    assert sorted(listed) == sorted(existing)


def test_page_has_the_layers_of_the_test() -> None:
    """To repair it, copy the lines of `LAYERS` into the page."""
    block = section("Imports").partition("```\n")[2].partition("```")[0]
    assert block.splitlines() == [", ".join(names) for names in LAYERS]


def test_paths_of_the_table_of_changes_exist() -> None:
    table = rows((DOCS / "maintainers" / "changes.md").read_text(encoding="utf-8"))
    text = " ".join(cell for row in table for cell in row)
    named = set(re.findall(r"`([\w./-]+(?:/|\.(?:py|md|toml|yaml)))`", text))
    missing = [name for name in named if not (LIBRARY / name).exists() and not (REPOSITORY / name).exists()]
    assert missing == []
    assert len(named) > 20


def test_glossary_defines_each_word_once() -> None:
    page = (DOCS / "explanation" / "how-it-works.md").read_text(encoding="utf-8")
    table = rows(page.partition("\n## Words\n")[2])
    words = [word.strip() for row in table for word in row[0].split(",")]
    assert 20 < len(table) <= 30
    assert sorted(words) == sorted(set(words))
