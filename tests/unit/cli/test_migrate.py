"""`agent-memory index migrate`, `rollback` and `reindex`, in this process; the index is built in another, as always."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.embeddings import PROVIDERS, Provider
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.files.layout import folder_of
from agent_memory.store.shards import Shards

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

    from tests.unit.cli.conftest import Run


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("AGENT_MEMORY_AGENT", raising=False)
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int = 0) -> Result:
        result = runner.invoke(app, [*arguments, "--root", str(root)], prog_name="agent-memory", catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def with_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = HashEmbedder()
    monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: embedder))


@pytest.mark.usefixtures("with_embedder")
def test_there_and_back(cli: Run) -> None:
    cli("store", "--agent", "bob", "The office is in Lyon")
    moved = json.loads(cli("index", "migrate", "--json").stdout)
    assert (moved["backend"], moved["changed"], moved["memories"]) == ("vector", True, 1)
    assert "uses the vector engine already" in cli("index", "migrate").stdout
    assert "vector" in cli("status").stdout
    cli("store", "Tea at noon")
    assert json.loads(cli("index", "rebuild", "--json").stdout)["memories"] == 2
    assert "Lyon" in cli("search", "office").stdout
    assert "files alone again" in cli("index", "rollback").stdout
    assert json.loads(cli("index", "rollback", "--json").stdout) == {"backend": "file", "changed": False}
    assert "noon" in cli("search", "tea").stdout


@pytest.mark.usefixtures("with_embedder")
def test_without_an_index_there_is_none_to_build_anew(cli: Run) -> None:
    cli("store", "--agent", "bob", "The office is in Lyon")
    assert "agent-memory index migrate" in cli("index", "rebuild", code=2).stderr


def test_without_an_embedder_it_says_what_is_missing(cli: Run) -> None:
    cli("store", "--agent", "bob", "The office is in Lyon")
    said = cli("index", "migrate", code=1).stderr.replace("\n", " ")
    assert "the embedder 'local' is not installed" in said
    assert "pip install" in said
    assert "Set backend" not in said, "there is no such option here"


def test_without_an_engine_there_is_a_way_back_and_it_says_when_there_is_none(cli: Run, root: Path) -> None:
    cli("store", "--agent", "bob", "The office is in Lyon")
    assert "Nothing to roll back" in cli("index", "rollback").stdout
    Shards(folder_of("bob", root)).switch("vector", None)  # as it was migrated on a machine that has one
    assert "files alone again" in cli("index", "rollback").stdout
    assert "Nothing to roll back" in cli("index", "rollback").stdout
