"""Proposals of sessions on the command line: listed by `review`, carried out by `accept`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

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
