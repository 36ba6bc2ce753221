"""`agent-memory inbox`: what waits, and a person's yes, no, or other words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory import open_service
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import Observation
from agent_memory.settings import ServiceSettings
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

FIRST, SECOND, THIRD = "The release is on Fridays.", "Ann sits beside the window.", "Kestrel runs the builds."


@pytest.fixture
def waiting(bob: Run, root: Path) -> list[str]:
    """Have three candidates wait in bob's inbox; return their ids."""

    async def hold() -> list[str]:
        service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
        try:
            async with opened_inbox(service) as opened:
                seen = [
                    Observation(content=text, category="decision", confidence=0.9) for text in (FIRST, SECOND, THIRD)
                ]
                return (await opened.hold(seen)).ids
        finally:
            await service.close()

    return asyncio.run(hold())


def texts(bob: Run) -> list[str]:
    return [each["content"] for each in document(bob("inbox", "--json"))["waiting"]]


def remembered(bob: Run) -> set[str]:
    return {each["content"] for each in document(bob("list", "--json"))["memories"]}


def test_an_empty_inbox_says_so(bob: Run) -> None:
    assert "Nothing waits" in bob("inbox").stderr
    assert document(bob("inbox", "--json")) == {"agent_id": "bob", "waiting": []}
    assert "agent-memory inbox" not in bob("status").stdout
    assert "inbox" not in document(bob("status", "--json"))


def test_what_waits_is_listed_and_in_the_status_and_nowhere_else(bob: Run, waiting: list[str]) -> None:
    listed = bob("inbox").stdout
    assert all(text in listed for text in (FIRST, SECOND, THIRD, *waiting))
    assert document(bob("status", "--json"))["inbox"] == 3
    assert "3 notes wait for your decision; `agent-memory review`" in bob("status").stdout
    assert not {FIRST, SECOND, THIRD} & remembered(bob)
    assert FIRST not in bob("search", "release Fridays", code=3).stdout
    assert FIRST not in bob("briefing").stdout
    assert bob("doctor", "-a", "bob").exit_code == 0


def test_a_yes_a_no_and_other_words(bob: Run, waiting: list[str]) -> None:
    first, second, third = waiting
    done = document(bob("inbox", "--accept", first, "--reject", second[4:9], "--json"))
    assert [each["id"] for each in done["accepted"]] == [first]
    assert done["rejected"] == [second]
    bob("inbox", "--edit", third, "--text", "Kestrel and Merlin run the builds.")
    assert texts(bob) == []
    assert {FIRST, "Kestrel and Merlin run the builds."} <= remembered(bob)
    assert not {SECOND, THIRD} & remembered(bob)


@pytest.mark.parametrize("arguments", [("--accept", "cnd-000000000000"), ("--reject", "cnd-"), ("--edit", "x")])
def test_what_does_not_wait_cannot_be_decided_on(bob: Run, waiting: list[str], arguments: tuple[str, ...]) -> None:
    assert "does not wait" in bob("inbox", "--accept", waiting[0], *arguments, code=3).stderr
    assert len(texts(bob)) == 3


def test_odd_wishes_are_wrong_usage(bob: Run, waiting: list[str]) -> None:
    first = waiting[0]
    bob("inbox", "--text", "x", code=2)
    bob("inbox", "--accept", first, "--reject", first, code=2)
    bob("inbox", "--edit", first, "--text", "  ", code=1)
    bob("inbox", "--edit", first, code=2)  # no terminal for an editor
    assert len(texts(bob)) == 3


def test_an_export_takes_what_waits_along_and_a_trusted_import_has_it_wait_again(
    bob: Run, waiting: list[str], tmp_path: Path
) -> None:
    for suffix in ("jsonl", "yaml"):
        file = tmp_path / f"all.{suffix}"
        assert "3 candidates" in bob("export", str(file), "-a", "bob").stdout
        agent = f"eve-{suffix}"
        assert "--trusted" in bob("import", str(file), "-a", agent).stderr
        assert document(bob("inbox", "-a", agent, "--json"))["waiting"] == []
        bob("import", str(file), "-a", agent, "--trusted")
        bob("import", str(file), "-a", agent, "--trusted")
        again = document(bob("inbox", "-a", agent, "--json"))["waiting"]
        assert [(each["id"], each["content"]) for each in again] == list(
            zip(waiting, (FIRST, SECOND, THIRD), strict=True)
        )


def test_a_backup_brings_it_back_and_what_was_rejected_stays_rejected(bob: Run, waiting: list[str]) -> None:
    file = document(bob("backup", "create", "--json"))["backups"][0]["file"]
    bob("inbox", "--reject", waiting[0], "--accept", waiting[1])
    assert texts(bob) == [THIRD]
    bob("backup", "restore", file, "--yes")
    assert texts(bob) == [SECOND, THIRD]


def test_a_request_to_forget_names_what_waits_and_is_meant(bob: Run, waiting: list[str]) -> None:
    told = bob("forget", "--matching", "where Ann sits", code=1)
    assert f"{waiting[1]}: waits in the inbox; not forgotten" in told.stderr
    assert f"--reject {waiting[1]}" in told.stderr
    assert document(bob("forget", "--matching", "where Ann sits", "--json", code=1))["waiting"] == [waiting[1]]
    bob("inbox", "--reject", waiting[1])
    assert document(bob("forget", "--matching", "where Ann sits", "--json", code=1))["waiting"] == []
