"""`agent-memory index push` and `pull`, in this process, against a server on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import build
from tests.qdrant_server import QUIET, Answer, QdrantHttpServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result

    from tests.unit.cli.conftest import Run

pytestmark = [pytest.mark.enable_socket, *QUIET]
SECRET = "ghp_" + "x7Kq2mZ9" * 4 + "aB3d"


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Iterator[QdrantHttpServer]:
    running = QdrantHttpServer()
    monkeypatch.setenv("QDRANT_URL", running.url)
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    monkeypatch.delenv("AGENT_MEMORY_AGENT", raising=False)
    yield running
    running.close()


@pytest.fixture
def cli(http: QdrantHttpServer, root: Path, tmp_path: Path) -> Run:
    """Return `agent-memory` on this machine, or on the machine `at`."""
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int = 0, at: str | None = None) -> Result:
        place = str(tmp_path / at) if at else str(root)
        result = runner.invoke(app, [*arguments, "--root", place], prog_name="agent-memory", catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return run


def test_what_one_machine_pushed_another_pulls(cli: Run) -> None:
    cli("store", "--agent", "bob", "The office is in Lyon")
    cli("store", "Tea at noon")
    assert cli("index", "push").stdout == "Pushed 2 memories.\n"
    assert cli("index", "push").stdout == "Pushed 0 memories, skipped 2 that were there.\n"
    assert cli("index", "pull", "--agent", "bob", at="elsewhere").stdout == "Pulled 2 memories.\n"
    assert "Lyon" in cli("search", "office", at="elsewhere").stdout
    assert cli("index", "pull", at="elsewhere").stdout == "Pulled 0 memories, skipped 2 that were there.\n"


def test_a_text_that_differs_stays_where_it_is(cli: Run) -> None:
    stored = json.loads(cli("store", "--agent", "bob", "--json", "tea").stdout)
    cli("index", "push")
    cli("update", stored["memory_id"], "--content", "coffee")
    assert "1 of those skipped have another text there, which stays." in cli("index", "push").stderr
    assert "1 of those skipped have another text here, which stays." in cli("index", "pull").stderr


def test_programs_get_counts(cli: Run) -> None:
    cli("store", "--agent", "bob", "tea")
    counts: dict[str, Any] = json.loads(cli("index", "push", "--json").stdout)
    assert counts == {
        "stored": 1, "present": 0, "differs": 0, "forgotten": 0, "refused": 0, "problems": [], "redacted": [],
    }  # fmt: skip


def test_what_was_forgotten_here_is_not_pulled(cli: Run) -> None:
    stored = json.loads(cli("store", "--agent", "bob", "--json", "tea").stdout)
    cli("index", "push")
    cli("forget", "--yes", stored["memory_id"])
    assert cli("index", "pull").stdout == "Pulled 0 memories, left 1 forgotten.\n"


def test_without_an_address_it_says_how_to_give_one(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("store", "--agent", "bob", "tea")
    monkeypatch.delenv("QDRANT_URL")
    assert "--url" in cli("index", "push", code=2).stderr


def test_a_server_that_fails_half_way_is_reported_with_what_is_there(cli: Run, http: QdrantHttpServer) -> None:
    cli("store", "--agent", "bob", "tea")

    def down(method: str, path: str) -> Answer | None:
        return (503, b"") if method == "PUT" and path.endswith("/points") else None

    http.trouble = down
    failed = cli("index", "push", code=1)
    assert failed.stdout == "Pushed 0 memories.\n"
    assert "It is not known" in failed.stderr
    http.trouble = lambda method, path: None
    assert cli("index", "push").stdout == "Pushed 1 memory.\n"


def test_a_collection_of_another_embedder_takes_memories_without_vectors(cli: Run, http: QdrantHttpServer) -> None:
    cli("store", "--agent", "bob", "tea")
    http.client.create_collection(
        "agent_memory", vectors_config={}, metadata={"agent_memory": 1, "agent_memory_embedder": "openai:x:8"}
    )
    words = cli("index", "push", "--embedder", "none")
    assert words.stdout == "Pushed 1 memory.\n"
    assert "openai:x:8" not in words.stderr


@pytest.mark.parametrize("url", ["memory.example", "ftp://memory.example"])
def test_a_wrong_address_is_an_error(cli: Run, url: str) -> None:
    cli("store", "--agent", "bob", "tea")
    assert "https://host:6333" in cli("index", "push", "--url", url, code=1).stderr
