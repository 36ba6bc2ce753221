"""`agent-memory page` without its packages, and what it hands to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.cli import web_page
from agent_memory.settings import installation

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit.cli.conftest import Run


def test_page_without_its_packages_names_how_to_install_them(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _name: None)
    assert "starlette" in cli("page", code=1).stderr


def test_page_of_the_demo_touches_no_memory(bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Any, int, bool]] = []

    async def serve(session: Any, port: int, announce: Any, *, opens_browser: bool) -> None:
        announce("http://127.0.0.1:1/enter?token=x")
        served.append((session, port, opens_browser))

    load = web_page.load_handler
    monkeypatch.setattr(web_page, "load_handler", lambda place: serve if "serve_page" in place else load(place))
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert "/enter?token=x" in bob("page", "--demo", "--read-only", "--no-browser", "--embedder", "none").stdout
    session, port, opens_browser = served[0]
    assert (session.agent_id, session.is_demo, session.is_read_only) == ("demo", True, True)
    assert (port, opens_browser) == (0, False)
    assert not session.root.exists()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
