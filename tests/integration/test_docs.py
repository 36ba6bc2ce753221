"""The documentation is true: its Python runs, its generated pages are current, its links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from agent_memory.service import events
from scripts import configuration_page

HERE = Path(__file__).resolve().parents[2]
PAGES = sorted([HERE / "README.md", HERE / "CONTRIBUTING.md", *(HERE / "docs").glob("*.md")])
SNIPPETS = [
    pytest.param(match[1], id=f"{page.name}-{number}")
    for page in PAGES
    for number, match in enumerate(re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "a snippet", "exec"), {"__name__": "__main__"})


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 3


@pytest.mark.parametrize(
    ("name", "document"), [("events.md", events.document), ("configuration.md", configuration_page.document)]
)
def test_a_generated_page_is_what_the_code_says(name: str, document: object) -> None:
    assert callable(document)
    assert (HERE / "docs" / name).read_text() == document(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_error_code_is_in_the_documentation() -> None:
    sources = [*(HERE / "src").rglob("*.py"), *(HERE / "modules").rglob("*.py")]
    pattern = r'(?:code=|default_code(?:: ClassVar\[str\])? = )"([a-z_]+)"'
    codes = {code for source in sources for code in re.findall(pattern, source.read_text())}
    words = set(re.findall(r"`([a-z_]+)`", "".join(page.read_text() for page in PAGES)))
    assert len(codes) > 40
    assert codes - words == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_installed_is_what_there_is(page: Path) -> None:
    """No package index has this distribution, and an address with somebody's name in it works for somebody."""
    text = page.read_text()
    assert not re.search(r"install[^\n]*'?amplifier-bundle-agent-memory\[", text)
    assert not re.search(r"\bOWNER\b|git\+https://github\.com/[^/…]+/amplifier-bundle-agent-memory", text)


def test_extras_and_behaviors_that_pages_name_exist() -> None:
    text = "".join(page.read_text() for page in PAGES)
    extras = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for group in re.findall(r"'\.\[([a-z,]+)\]'", text) for extra in group.split(",")}
    assert {"cli", "local", "server"} <= named <= set(extras)
    behaviors = set(re.findall(r"behaviors/[a-z-]+\.yaml", text))
    assert behaviors == {f"behaviors/{path.name}" for path in (HERE / "behaviors").iterdir()}
