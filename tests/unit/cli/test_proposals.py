"""Proposals of sessions on the command line: listed by `review`, carried out by `accept`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.cli import trust_tool
from agent_memory.cli.runtime import CommandContext
from tests.hostile.attacked import RULE, Attacked

if TYPE_CHECKING:
    from pathlib import Path


def propose(root: Path) -> str:
    """Let a tainted session propose to forget a memory; return the ID of the proposal."""

    async def run() -> str:
        session = await Attacked(root).begin()
        await session.say("note it")
        memory = await session.store(RULE)
        await session.read()
        answer = await session.tool("memory_forget", ids=[memory.id])
        await session.end()
        return str(answer["recovery"]).partition("the id ")[2].partition(".")[0]

    return asyncio.run(run())


@pytest.mark.parametrize("prefix", ["", "cnd-"])
def test_accept_proposal_carries_it_out(root: Path, cli: Any, prefix: str) -> None:
    proposal = propose(root)
    [waiting] = json.loads(cli("review", "--json", "-a", "bob", code=1).stdout)["waiting"]
    assert (waiting["id"], waiting["act"], waiting["content"]) == (f"cnd-{proposal}", "forget", RULE)
    assert "was forgotten." in cli("accept", prefix + proposal, "-a", "bob").stdout
    assert RULE not in cli("list", "--json", "-a", "bob").stdout
    assert "is not a proposal" in cli("accept", prefix + proposal, "-a", "bob", code=3).stderr


def test_review_of_an_update_shows_plain_values(root: Path, cli: Any) -> None:
    async def run() -> str:
        session = await Attacked(root).begin()
        await session.say("note it")
        memory = await session.store(RULE)
        await session.read()
        await session.tool("memory_update", memory_id=memory.id, tags=["a", "b"])
        await session.end()
        return memory.id

    memory_id = asyncio.run(run())
    assert f"would update {memory_id}: tags a, b\n" in cli("review", "-a", "bob", code=1).stdout


@pytest.mark.parametrize(
    "arguments", [("accept", "ID", "--undo"), ("inbox", "--edit", "ID", "--text", "We push to main.")]
)
def test_option_that_fits_no_proposal_changes_nothing(root: Path, cli: Any, arguments: tuple[str, ...]) -> None:
    proposal = propose(root)
    given = [proposal if argument == "ID" else argument for argument in arguments]
    assert "; nothing was" in cli(*given, "-a", "bob", code=2).stderr
    assert RULE in cli("list", "--json", "-a", "bob").stdout
    [waiting] = json.loads(cli("review", "--json", "-a", "bob", code=1).stdout)["waiting"]
    assert waiting["id"] == f"cnd-{proposal}"


def test_trust_tool_adds_lists_and_removes(root: Path, cli: Any) -> None:
    assert json.loads(cli("trust-tool", "--json").stdout) == {"trusted": []}
    assert "lookup_tool in all projects" in cli("trust-tool", "lookup_tool").stdout
    assert "names no Python package" in cli("trust-tool", "a b", code=1).stderr
    assert json.loads(cli("trust-tool", "lookup_tool", "--remove", "--json").stdout) == {"trusted": []}
    assert "is not trusted" in cli("trust-tool", "lookup_tool", "--remove", code=1).stderr


def test_trust_tool_not_installed_says_so_and_asks(root: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = "'lookup_tool' is not installed for this program"
    assert warning in cli("trust-tool", "lookup_tool:find").stderr
    assert warning not in cli("trust-tool", "agent_memory:memory_search").stderr
    monkeypatch.setattr(trust_tool, "is_terminal", lambda: True)
    monkeypatch.setattr(CommandContext, "need_terminal", lambda *_: None)
    refused = cli("trust-tool", "other_tool", given="n\n", code=1)
    assert "Nothing was changed." in refused.stderr
    cli("trust-tool", "other_tool", "--yes")
    listed = json.loads(cli("trust-tool", "--json").stdout)["trusted"]
    assert [tool["package"] for tool in listed] == ["lookup_tool:find", "agent_memory:memory_search", "other_tool"]


def test_why_of_proposal_names_text_and_trust(root: Path, cli: Any) -> None:
    proposal = propose(root)
    shown = cli("why", f"cnd-{proposal[:6]}", "-a", "bob")
    assert RULE in shown.stdout
    assert "low: the model wrote it, and untrusted text was in the conversation" in shown.stdout
    assert f"agent-memory accept cnd-{proposal}" in shown.stderr
    viewed = json.loads(cli("why", f"cnd-{proposal}", "-a", "bob", "--json").stdout)
    assert (viewed["id"], viewed["trust"]) == (f"cnd-{proposal}", "low")
    assert viewed["why"].startswith("the model wrote it")
    cli("accept", proposal, "-a", "bob")
    assert "does not wait for a decision" in cli("why", f"cnd-{proposal}", "-a", "bob", code=3).stderr
