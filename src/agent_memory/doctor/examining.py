"""The examination: every check over the home and each of its agents. Reads; changes nothing, whatever it meets."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from agent_memory.doctor.context import Case, open_case
from agent_memory.doctor.copies import examine_copies
from agent_memory.doctor.derived import examine_aside, examine_audit, examine_metadata, examine_scratchpad
from agent_memory.doctor.findings import WARNING, AgentReport, Check, Finding, Report, by_area
from agent_memory.doctor.home import agent_names, examine_home, examine_parts, examine_sessions
from agent_memory.doctor.places import examine_place
from agent_memory.doctor.reading import JournalFacts
from agent_memory.doctor.truth import examine_journal, examine_lock, examine_rejected
from agent_memory.doctor.vectors import examine_index, examine_vectors
from agent_memory.errors import AgentMemoryError
from agent_memory.files.entries import size_of
from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import folder_of
from agent_memory.storage.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.storage import AgentFolder

_OF_AN_AGENT: Final[tuple[Check, ...]] = (
    examine_place,
    examine_journal,
    examine_rejected,
    examine_copies,
    examine_lock,
    examine_aside,
    examine_scratchpad,
    examine_metadata,
    examine_index,
    examine_vectors,
    examine_audit,
)
_AT_A_GLANCE: Final[tuple[Check, ...]] = (
    examine_place,
    examine_rejected,
    examine_lock,
    examine_aside,
    examine_metadata,
)
_BEYOND: Final = (AgentMemoryError, OSError, ValueError, TypeError, KeyError, RecursionError, sqlite3.Error)
"""What damaged files may still raise where nobody thought of it: told as a finding, never hidden."""


def examine(
    root: Path, agents: Sequence[str] | None = None, *, now: datetime, settings: ServiceSettings | None = None
) -> Report:
    """Return what is found under a storage root.

    Args:
        root: The folder of all agents.
        agents: Names to look at; all when omitted.
        now: The present, UTC.
        settings: What sessions use; the defaults when omitted.
    """
    settings = settings or ServiceSettings()
    found = [*_run(examine_home, root), *_run(examine_sessions, root), *_run(examine_parts)]
    names = agent_names(root) if agents is None else agents
    reports = tuple(examine_agent(root, name, now=now, settings=settings) for name in names)
    return Report(root, by_area(found), reports)


def examine_agent(root: Path, agent_id: str, *, now: datetime, settings: ServiceSettings) -> AgentReport:
    """Return what is found about one agent."""
    try:
        folder = folder_of(agent_id, root)
    except AgentMemoryError as error:
        trouble = Finding("folder_unusable", error.message, error.recovery)
        return AgentReport(agent_id, root / agent_id, 0, None, (trouble,))
    try:
        list(folder.path.iterdir())
        case = open_case(folder, settings, now)
    except _BEYOND as error:
        trouble = Finding("folder_unusable", f"The folder cannot be read: {_words(error)}.", "Check its permissions.")
        return AgentReport(folder.agent_id, folder.path, 0, None, (trouble,))
    found = [finding for check in _OF_AN_AGENT for finding in _run(check, case)]
    memories = None if case.journal.trouble else len(case.journal.memories)
    return AgentReport(folder.agent_id, folder.path, size_of(folder.path), memories, by_area(found))


def glance(folder: AgentFolder, *, now: datetime, settings: ServiceSettings) -> list[Finding]:
    """Return what wants attention and can be seen without reading the journal: a few milliseconds.

    The journal and what lies beside it are looked at by whoever reads it anyway (`MemoryStorage.health`).
    """
    empty = JournalFacts(folder.journal, folder.agent_id, State(MEMORY, folder.agent_id))
    case = Case(folder, settings, now, empty)
    if not folder.path.is_dir():
        return []
    found = [finding for check in _AT_A_GLANCE for finding in _run(check, case)]
    return [finding for finding in by_area(found) if finding.severity >= WARNING]


def _run(check: Check, *arguments: object) -> list[Finding]:
    found: list[Finding] = []
    try:
        for finding in check(*arguments):
            found.append(finding)  # noqa: PERF402 - what was found before an error counts
    except _BEYOND as error:
        what = check.__name__.removeprefix("examine_")
        found.append(
            Finding("not_examined", f"The examination of {what} failed: {_words(error)}.", "Please report this.")
        )
    return found


def _words(error: BaseException) -> str:
    text = error.message if isinstance(error, AgentMemoryError) else str(error) or type(error).__name__
    return " ".join(text.split())[:200].rstrip(".")
