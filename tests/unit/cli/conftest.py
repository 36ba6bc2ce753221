"""`agent-memory` in this process, and an agent bob who knows three things."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from agent_memory.cli import conflicts, decisions, review
from agent_memory.cli.app import build
from agent_memory.cli.runtime import CommandContext
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import Relation
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

A, B, C = "mem-00000000000a", "mem-00000000000b", "mem-00000000000c"


def document(result: Result) -> Any:
    """Return the one JSON document that must be all of stdout."""
    return json.loads(result.stdout)


def relate(root: Path, relation: str, *ends: str, **fields: Any) -> None:
    """Store what a language model says of two entities of eve, with the first turn that names the second one.

    Args:
        root: Storage root.
        relation: Type of the relation.
        ends: Names of the subject and the object.
        fields: More fields of the record.
    """

    async def store() -> None:
        knowledge = Knowledge("eve", ServiceSettings(storage_root=str(root), embedder="none"))
        known = {entity.name: entity.id for entity in await knowledge.entities.valid()}
        texts = [*await knowledge.episodes.valid(), *await knowledge.resources.valid()]
        source = next(each for each in texts if fields["content"] in each.content)
        linked = dict(zip(("subject", "object"), (known[name] for name in ends), strict=True)) | {"from": source.id}
        links = [{"rel": rel, "id": record_id} for rel, record_id in linked.items()]
        made = {"agent_id": "eve", "relation_type": relation, "trust": source.trust, "links": links}
        await knowledge.relations.store(Relation(**made, source={"kind": "extraction", "detail": "model"}, **fields))
        await knowledge.close()

    asyncio.run(store())


def ids(result: Result, key: str = "results") -> list[str]:
    """Return the ids of an answer, in their order."""
    return [each["id"] for each in document(result)[key]]


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` for an empty storage root, with nothing said by the environment."""
    for name in ("AGENT_MEMORY_AGENT", "NO_COLOR", "FORCE_COLOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int = 0, given: str | bytes | None = None) -> Result:
        result = runner.invoke(app, list(arguments), input=given, prog_name="agent-memory", catch_exceptions=False)
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.output
        return result

    return run


@pytest.fixture
def bob(cli: Run, tmp_path: Path) -> Run:
    """Return the same once an agent bob knows three things; C replaces A."""
    entries: list[dict[str, Any]] = [
        {"id": A, "content": "The ledger is in MySQL.", "timestamp": "2026-01-10T12:00:00Z", "category": "decision"},
        {"id": B, "content": "Maria likes tea.", "timestamp": "2026-02-10T12:00:00Z", "tags": ["drinks", "maria"]},
        {
            "id": C,
            "content": "The ledger is in PostgreSQL.",
            "timestamp": "2026-03-10T12:00:00Z",
            "category": "decision",
            "supersedes": A,
        },
    ]
    file = tmp_path / "bob.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    cli("import", str(file), "--agent", "bob", "--trusted")
    return cli


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Return a function that types keys at a terminal and returns the questions shown since."""

    def type_keys(keys: str) -> list[str]:
        typed, questions = iter(keys), list[str]()

        def read_key(_run: Any, question: str) -> str:
            questions.append(question)
            return next(typed, "q")

        for module in (review, conflicts):
            monkeypatch.setattr(module, "is_terminal", lambda: True)
        monkeypatch.setattr(CommandContext, "need_terminal", lambda *_: None)
        monkeypatch.setattr(decisions, "read_key", read_key)
        return questions

    return type_keys
