"""Every query that README, the pages and the first specification print is answered, the right memory first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory import open_service
from agent_memory.models import HIT_KINDS
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.memory import MemoryService

HERE = Path(__file__).resolve().parents[2]
PAGES = [HERE / "README.md", *sorted((HERE / "docs").rglob("*.md"))]
PRINTED = re.compile(
    r"""agent-memory search [^'"\n`|]*(?:'([^'\n]*)'|"([^"\n]*)")|\.search\(\s*"([^"\n]+)"|"query": "([^"\n]+)\""""
)

LEDGER = "Use PostgreSQL for the ledger"
OWNER = "Kate owns the ledger of the harbour."
BACKUP = "The daily backup keeps 30 copies."
LIVES = "The user lives in Berlin"
DEPLOY = "Deploy on Fridays only after the smoke tests"
EDITOR = "The user prefers dark mode in their editor."
POSTGRES = "Prefer PostgreSQL for new projects"
QDRANT = "Decided to use Qdrant for vector storage"
SQLITE = "SQLite is good for embedded use cases"
BUG = "The login loop came from an expired session cookie."
DESIGN = "Architecture: services talk through one event bus."
UNANSWERED = "who bakes the bread"
"""Printed as a query that no memory answers."""

OF_PAGES: dict[str, set[str]] = {
    "which database did we pick": {LEDGER},
    "who owns the ledger": {OWNER},
    "when does the backup run": {BACKUP},
    "when do backups run": {BACKUP},
    "where does the user live": {LIVES},
    "when may we deploy": {DEPLOY},
}
OF_SPECIFICATION: list[tuple[str, dict[str, Any], set[str]]] = [
    ("What database preferences do I have?", {}, {POSTGRES, QDRANT}),
    ("database preferences", {}, {POSTGRES, QDRANT}),
    ("database preferences decisions", {}, {POSTGRES, QDRANT}),
    ("database work", {}, {POSTGRES, QDRANT, SQLITE}),
    ("What did we decide about databases?", {"category": "decision"}, {QDRANT}),
    ("recent bugs", {"category": "bugfix"}, {BUG}),
    ("work items", {"date_range": {"start": "2020-01-01"}}, {POSTGRES, QDRANT, SQLITE, BUG, DESIGN}),
    ("architecture decisions", {"tags": ["architecture", "design"]}, {DESIGN}),
]


@pytest.fixture
async def service(root: Path) -> AsyncIterator[MemoryService]:
    opened = open_service("bob", ServiceSettings(storage_root=str(root)))
    yield opened
    await opened.close()


def find_printed_queries() -> set[str]:
    return {
        query for page in PAGES for groups in PRINTED.findall(page.read_text(encoding="utf-8")) for query in groups
    } - {"", UNANSWERED}


def test_every_printed_query_is_in_the_table() -> None:
    assert find_printed_queries() == OF_PAGES.keys()


@pytest.mark.model
@pytest.mark.parametrize("query", OF_PAGES)
async def test_query_of_a_page_is_answered(service: MemoryService, query: str) -> None:
    await service.store({"content": LEDGER, "category": "decision"})
    for content in (OWNER, BACKUP, LIVES, EDITOR, DEPLOY):
        await service.store(content)
    found = await service.search(query, kinds=HIT_KINDS)
    assert found.match in {"strong", "weak"}
    assert found.results[0].memory.content in OF_PAGES[query]


@pytest.mark.model
@pytest.mark.parametrize(("query", "filters", "right"), OF_SPECIFICATION, ids=[row[0] for row in OF_SPECIFICATION])
async def test_query_of_the_specification_is_answered(
    service: MemoryService, query: str, filters: dict[str, Any], right: set[str]
) -> None:
    await service.store({"content": POSTGRES, "category": "preference", "tags": ["database", "postgresql"]})
    await service.store({"content": QDRANT, "category": "decision", "tags": ["database"]})
    await service.store({"content": SQLITE, "category": "note", "tags": ["database"]})
    await service.store({"content": BUG, "category": "bugfix"})
    if right & {DESIGN}:  # of the other queries, the specification's own memories alone
        await service.store({"content": DESIGN, "category": "decision", "tags": ["architecture"]})
    found = await service.search(query, filters=filters or None, kinds=HIT_KINDS)
    assert found.match in {"strong", "weak"}
    assert found.results[0].memory.content in right


@pytest.mark.model
@pytest.mark.parametrize("query", ["What do you know about my editor?", "what do you remember about my editor"])
async def test_query_of_the_first_dialogue_is_answered(service: MemoryService, query: str) -> None:
    await service.store({"content": EDITOR, "category": "preference"})
    await service.store(BACKUP)
    found = await service.search(query, kinds=HIT_KINDS)
    assert (found.match, found.results[0].memory.content) == ("strong", EDITOR)
