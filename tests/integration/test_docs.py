"""The documentation is true: its Python runs, its generated pages are current, its links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import agent_memory
from agent_memory.memory import MemoryService
from agent_memory.settings import OFFERED_TOOLS
from scripts import docs, errors_page, picture, prices
from tests.rows import check_rows

if TYPE_CHECKING:
    from agent_memory.memory import Found

HERE = Path(__file__).resolve().parents[2]
PAGES = sorted([HERE / "README.md", HERE / "CONTRIBUTING.md", HERE / "SECURITY.md", *(HERE / "docs").rglob("*.md")])
RUN_AS_PAGES = {HERE / "README.md", *(HERE / "docs" / "tutorials").glob("*"), *(HERE / "docs" / "how-to").glob("*")}
"""Pages whose blocks `test_doc_blocks.py` runs in their order."""
MAX_NAVIGATION = 26
MAX_WORDS = 36_000  # 35,000 before imports, the page, hooks and adapters had theirs
MAX_README_LINES = 120
SNIPPETS = [
    pytest.param(match[1], id=f"{page.name}-{number}")
    for page in PAGES
    if page not in RUN_AS_PAGES
    for number, match in enumerate(re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_of_a_page_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "a snippet", "exec"), {"__name__": "__main__"})


def test_pages_have_snippets() -> None:
    assert len(SNIPPETS) >= 3


@check_rows("name", docs.PAGES)
def test_generated_page_equals_the_code(name: str) -> None:
    assert (docs.FOLDER / name).read_text() == docs.PAGES[name](), "run: make docs"


def test_tree_of_errors_equals_the_classes() -> None:
    assert errors_page.tree_of_module() == errors_page.indent(errors_page.render_tree()), "run: make docs"


def test_picture_shows_the_recorded_commands() -> None:
    drawn = "".join(ET.parse(HERE / "docs" / "picture.svg").getroot().itertext()).replace("\xa0", " ")
    assert [command for command in picture.COMMANDS if command not in drawn] == []
    assert "strong" in drawn


def test_every_page_for_users_is_in_the_navigation() -> None:
    config = (HERE / "mkdocs.yml").read_text()
    listed = set(re.findall(r"(\S+\.md)$", config.partition("\nnav:")[2], re.MULTILINE))
    pages = {page.relative_to(HERE / "docs").as_posix() for page in (HERE / "docs").rglob("*.md")}
    assert {page for page in pages - listed if not page.startswith("maintainers/")} == set()
    assert listed <= pages
    assert len(listed) <= MAX_NAVIGATION


def test_readme_has_the_price_of_the_tools() -> None:
    readme = (HERE / "README.md").read_text()
    assert f"eight tools for the model, {sum(prices.tool_prices().values())} tokens a request" in readme
    assert len(OFFERED_TOOLS) == 8


def test_readme_is_short() -> None:
    assert len((HERE / "README.md").read_text().splitlines()) <= MAX_README_LINES


def test_site_loads_nothing_from_elsewhere() -> None:
    config = (HERE / "mkdocs.yml").read_text()
    assert "font: false" in config
    assert "polyfills: [assets/iframe-worker.js]" in config  # else the plugin adds a script of a remote host
    assert not re.search(r"https?:", config + (HERE / "docs" / "assets" / "iframe-worker.js").read_text())


def test_pages_have_few_words() -> None:
    pages = (HERE / "docs").rglob("*.md")
    assert sum(len(page.read_text().split()) for page in pages) <= MAX_WORDS


def test_index_of_decisions_has_their_titles() -> None:
    folder = HERE / "docs" / "maintainers" / "adr"
    rows = re.findall(
        r"^\| \[(\d{4})\]\((\S+)\) \| (.+?) \| (.+?) \|$", (folder / "index.md").read_text(), re.MULTILINE
    )
    told = {name: (f"# {number}. {title}", f"Status: {status}") for number, name, title, status in rows}
    heads = {path.name: path.read_text().splitlines() for path in folder.glob("0*.md")}
    assert {name: (lines[0], lines[2]) for name, lines in heads.items()} == told


@check_rows("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_exist(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_error_code_is_documented() -> None:
    sources = [path.read_text() for folder in ("src", "modules") for path in (HERE / folder).rglob("*.py")]
    pattern = r'(?:code=|default_code(?:: ClassVar\[str\])? = )"([a-z_]+)"'
    codes = {code for source in sources for code in re.findall(pattern, source)}
    documented = errors_page.documented_codes()
    assert len(codes) > 40
    assert codes - documented == set()
    assert {code for code in documented if not any(f'"{code}"' in source for source in sources)} == set()


@check_rows("page", PAGES, ids=lambda page: page.name)
def test_page_installs_only_from_a_clone(page: Path) -> None:
    """No package index has this distribution, and an address with somebody's name in it works for somebody."""
    text = page.read_text()
    assert not re.search(r"install[^\n]*'?amplifier-bundle-agent-memory\[", text)
    assert not re.search(r"\bOWNER\b|git\+https://github\.com/[^/…]+/amplifier-bundle-agent-memory", text)


def test_extras_and_behaviors_of_pages_exist() -> None:
    text = "".join(page.read_text() for page in PAGES)
    extras = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for group in re.findall(r"'\.\[([a-z,]+)\]'", text) for extra in group.split(",")}
    assert {"cli", "local", "server"} <= named <= set(extras)
    behaviors = set(re.findall(r"behaviors/[a-z-]+\.yaml", text))
    assert behaviors == {f"behaviors/{path.name}" for path in (HERE / "behaviors").iterdir()}


@pytest.mark.model
async def test_example_of_the_package_finds_by_meaning() -> None:
    """The docstring of the package runs in a new home."""
    lines = [line[4:] for line in (agent_memory.__doc__ or "").splitlines() if line.startswith("    ")]
    body = "\n    ".join([*lines, "await storage.close()", "return results"])
    names: dict[str, Any] = {}
    exec(f"async def example():\n    {body}", names)
    results = await names["example"]()
    assert [result.memory.content for result in results] == ["Use PostgreSQL for the ledger"]
    assert (results.mode, results.degraded) == ("hybrid", None)


@pytest.mark.model
@pytest.mark.parametrize("page", ["README.md", "docs/reference/python.md"])
def test_examples_of_a_page_find_by_meaning(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    modes = []
    search = MemoryService.search

    async def record_mode(self: MemoryService, *args: Any, **options: Any) -> Found:
        found = await search(self, *args, **options)
        modes.append(found.mode)
        return found

    monkeypatch.setattr(MemoryService, "search", record_mode)
    text = (HERE / page).read_text().partition("\n## Documents")[0]  # what follows has no embedder
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, page, "exec"), {"__name__": "__main__"})
    assert modes
    assert set(modes) == {"hybrid"}
