"""The pages of an account say in words what a record has; JSON says it to the letter."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

from agent_memory.care.account import write_account
from agent_memory.journal import PurgeList
from tests.house import OTHER, SECRET

if TYPE_CHECKING:
    from tests.house import House


async def test_times_tags_links_and_sources_are_told_in_words(bobs: House) -> None:
    first = await bobs.keep(SECRET)
    await bobs.keep(
        OTHER,
        tags=["harbour", "ledger"],
        links=[{"rel": "because", "id": first}],
        source={"kind": "tool", "detail": "notes"},
        metadata={"page": 7},
    )
    target = io.BytesIO()
    write_account(bobs.service.folder, target, "2026-03-01T12:00:00.000000Z")
    with zipfile.ZipFile(target) as archive:
        page, readme = archive.read("memories.md").decode(), archive.read("README.md").decode()
        records = [json.loads(line) for line in archive.read("records.jsonl").splitlines()]
    assert "Written 2026-03-01 12:00 UTC by agent-memory." in readme
    assert "- tags: `harbour, ledger`\n" in page
    assert f"- links: `because {first}`\n" in page
    assert "- source: `tool, notes`\n" in page
    assert '- metadata: `{"page": 7}`\n' in page
    assert "- timestamp: `2026-03-01 12:00 UTC`\n" in page
    assert records[1]["fields"]["source"] == {"kind": "tool", "detail": "notes"}
    assert records[1]["fields"]["timestamp"].startswith("2026-03-01T12:00:00")


async def test_what_is_being_purged_is_not_told(bobs: House) -> None:
    purged = await bobs.keep(SECRET)
    await bobs.service.forget(purged)
    PurgeList(bobs.folder).begin([purged], [SECRET], "2026-03-01T12:00:00Z")
    target = io.BytesIO()
    account = write_account(bobs.service.folder, target, "2026-03-01T12:00:00Z")
    assert account.by_kind.total() == 0
