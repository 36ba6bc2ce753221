"""The examination: every check over the home and each of its agents. Reads; changes nothing, whatever it meets."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.care.doctor import (
    checks_files,
    checks_hidden,
    checks_home,
    checks_journal,
)
from agent_memory.care.doctor.context import Case, cases_of
from agent_memory.care.doctor.findings import AgentReport, Finding, HomeReport, by_area
from agent_memory.encryption import of_encryption
from agent_memory.errors import AgentMemoryError
from agent_memory.files.concerns import Concern, of_lock, of_place
from agent_memory.files.entries import names_in, size_of
from agent_memory.files.layout import folder_of
from agent_memory.files.names import TOPICS
from agent_memory.journal import of_purges, of_rejected
from agent_memory.memory.kinds import KINDS
from agent_memory.registry import CHECKS, load_handler
from agent_memory.settings import ServiceSettings
from agent_memory.store.shards import of_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.care.doctor.reading import Kinds

Check = Callable[..., Iterable[Concern]]
"""Looks at one thing and yields what it finds. Never changes anything."""
Progress = Callable[[str, int, int], None]
_OF_THE_HOME: Final[dict[str, Check]] = {
    "home": checks_home.examine_home,
    "sessions": checks_home.examine_sessions,
    "consent": checks_home.examine_consent,
}
_OF_A_JOURNAL: Final[dict[str, Check]] = {
    "journal": checks_journal.examine_journal,
    "generation": checks_journal.examine_generation,
    "rejected": lambda case: of_rejected(case.path),
    "blobs": checks_files.examine_blobs,
    "tasks": checks_journal.examine_tasks,
    "hidden_conflicts": checks_hidden.examine_conflicts,
}
_DERIVED: Final[dict[str, Check]] = {
    "scratchpad": checks_files.examine_scratchpad,
    "segments": checks_files.examine_segments,
    "index": checks_files.examine_index,
}
"""What is made from one journal alone."""
_OF_AN_AGENT: Final[dict[str, Check]] = {
    "place": lambda case: of_place(case.folder),
    "presence": checks_journal.examine_presence,
    "copies": checks_journal.examine_copies,
    "lock": lambda case: of_lock(case.folder),
    "metadata": lambda case: of_metadata(case.folder),
    "vectors": checks_files.examine_vectors,
    "audit": checks_files.examine_audit,
    "backups": checks_files.examine_backups,
    "purges": lambda case: of_purges(case.folder.path),
    "encryption": lambda case: of_encryption(case.folder.path),
}
_BEYOND: Final = (AgentMemoryError, OSError, ValueError, TypeError, KeyError, RecursionError, sqlite3.Error)
"""What damaged files may raise in a check that did not expect it: reported as a finding, never hidden."""


def examine(
    root: Path,
    agents: Sequence[str] | None = None,
    *,
    now: datetime,
    settings: ServiceSettings | None = None,
    kinds: Kinds = KINDS,
    progress: Progress | None = None,
) -> HomeReport:
    """Return what is found under a storage root.

    Args:
        root: The folder of all agents.
        agents: Names to look at; all when omitted.
        now: The present, UTC.
        settings: What sessions use; the defaults when omitted.
        kinds: Of the records that agents keep.
        progress: Called with the name of an agent, how many bytes of a journal were read, and how many are to be.
    """
    settings = settings or ServiceSettings()
    names = checks_home.agent_names(root) if agents is None else agents
    reports = tuple(
        examine_agent(root, name, now=now, settings=settings, kinds=kinds, progress=progress) for name in names
    )
    wants_engine = any(2 * (each.memories or 0) >= settings.migration_threshold for each in reports)
    parts: dict[str, Check] = {"parts": lambda _: checks_home.examine_parts(wants_engine=wants_engine)}
    return HomeReport(root, by_area(_run(_OF_THE_HOME | parts, root)), reports)


def examine_agent(
    root: Path,
    agent_id: str,
    *,
    now: datetime,
    settings: ServiceSettings,
    kinds: Kinds = KINDS,
    progress: Progress | None = None,
) -> AgentReport:
    """Return what is found about one agent; see `examine`."""
    told = None if progress is None else partial(progress, agent_id)
    try:
        folder = folder_of(agent_id, root)
    except AgentMemoryError as error:
        trouble = Finding("folder_unusable", error.message, error.recovery)
        return AgentReport(agent_id, root / agent_id, 0, None, (trouble,))
    try:
        list(folder.path.iterdir())
        cases = cases_of(folder, settings, now, kinds, told)
    except _BEYOND as error:
        trouble = Finding("folder_unusable", f"The folder cannot be read: {_words(error)}.", "Check its permissions.")
        return AgentReport(folder.agent_id, folder.path, 0, None, (trouble,))
    found = [finding for case in cases for finding in examine_case(case)]
    journal = cases[0].journal
    memories = None if journal.file.trouble else cases[0].survey.count
    return AgentReport(folder.agent_id, folder.path, size_of(folder.path), memories, by_area(found))


def examine_case(case: Case) -> list[Finding]:
    """Return what is found about one journal, what is derived from it and, with the first one, the agent's folder."""
    checks = dict(_OF_A_JOURNAL)
    if case.path == case.folder.journal:
        checks |= _DERIVED
    if case.is_first:
        checks |= _OF_AN_AGENT
    return [*_run(checks, case), *_run(_find_registered(case), case)]


def _find_registered(case: Case) -> dict[str, Check]:
    """Return checks of feature packages for a journal.

    With the first journal also those for the folder of pages.
    """
    files = {case.path.name}
    if case.is_first:
        files |= {TOPICS} & set(names_in(case.folder.path))
    return {
        name: lambda case, check=check: load_handler(check.place)(case)
        for name, check in CHECKS.items()
        if check.file in files
    }


def _run(checks: Mapping[str, Check], subject: object) -> Iterator[Finding]:
    for name, check in checks.items():
        try:
            for each in check(subject):
                yield Finding(each.code, each.sentence, each.advice, each.size, each.details)
        except _BEYOND as error:
            what = f"The examination of {name} failed: {_words(error)}."
            advice = error.recovery if isinstance(error, AgentMemoryError) else "Please report this."
            yield Finding("not_examined", what, advice)


def _words(error: BaseException) -> str:
    text = error.message if isinstance(error, AgentMemoryError) else str(error) or type(error).__name__
    return " ".join(text.split())[:200].rstrip(".")
