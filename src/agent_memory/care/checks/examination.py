"""The doctor's examination of the home and its agents. Changes nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.care.agents import unfinished_agents
from agent_memory.care.checks import file_checks, journal_checks
from agent_memory.care.checks.codes import AgentReport, Finding, HomeReport, by_area
from agent_memory.care.checks.journal_survey import JournalCase, Kinds, list_cases
from agent_memory.embeddings.local import MINILM_SHA256, find_weights
from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import read_json
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import get_disk_size, get_path_type, names_in
from agent_memory.files.layout import folder_of, is_agent_id
from agent_memory.files.names import JOURNAL, SESSIONS, TOPICS
from agent_memory.files.wording import counted, format_size
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_earlier_settings, find_misplaced
from agent_memory.memory.kinds import KINDS
from agent_memory.memory.status import CHEAP_CHECKS
from agent_memory.registry import CHECKS, load_handler
from agent_memory.settings import ServiceSettings
from agent_memory.settings.installation import DISTRIBUTION, REQUIREMENTS, Part, advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime


FileCheck = Callable[..., Iterable[Concern]]
"""Reads one subject and yields concerns. Never changes anything."""
Progress = Callable[[str, int, int], None]
_WITHOUT: Final[dict[Part, str]] = {
    "local": "memories are found by words, not by meaning",
    "vector": "memories are found from the files, however many there are",
}
"""Consequence of a missing extra."""
_OTHERS_WRITE: Final = 0o022
_SHOWN_VERSIONS: Final = ("onnxruntime", "qdrant-edge-py")
_ERRORS: Final = (AgentMemoryError, OSError, ValueError, TypeError, KeyError, RecursionError, sqlite3.Error)
"""Errors of damaged files in a check that did not expect them: reported as a finding, never hidden."""


# -- the home -------------------------------------------------------------------------------------------------------


def agent_names(root: Path) -> list[str]:
    """Return names of non-empty folders below `root` that should be agents."""
    return [name for name in names_in(root) if is_agent_id(name) and get_path_type(root / name) in {"folder", "link"}]


def examine_home(root: Path) -> Iterator[Concern]:
    """Examine the folder of all agents."""
    kind = get_path_type(root, follow=True)
    if kind == "missing":
        yield Concern("home_missing", f"There is no folder {root} yet; the first memory creates it.")
        return
    try:
        if kind != "folder":
            raise NotADirectoryError(0, "it is no folder")
        entries = sorted(path.name for path in root.iterdir())
        unfinished = unfinished_agents(root)
        free = shutil.disk_usage(root).free
    except OSError as error:
        yield Concern("home_unusable", f"{root} cannot be used: {error.strerror}.", "Name another one with --root.")
        return
    agents = agent_names(root)
    yield Concern("home", f"{counted(len(agents), 'agent')}, {format_size(free)} free.", size=get_disk_size(root))
    yield from _check_openness(root)
    yield from _check_names(root, entries, agents)
    if unfinished:
        yield Concern(
            "agents_unfinished",
            f"{counted(len(unfinished), 'folder')} of an agent whose deletion or copying was interrupted; memories are "
            "still in there.",
            "`agent-memory agents` removes such folders.",
            sum(map(get_disk_size, unfinished)),
            tuple(path.name for path in unfinished[:3]),
        )


def _check_names(root: Path, entries: Sequence[str], agents: Sequence[str]) -> Iterator[Concern]:
    """Report names that are invalid or differ in case alone."""
    for name in entries:
        if name not in agents and not name.startswith((".", "_")) and (root / name / JOURNAL).is_file():
            sentence = f"The folder {name!r} has memories, but no agent can have that name."
            remedy = "Rename it: letters, digits, '_' and '-', beginning with a letter or digit."
            yield Concern("name_unusable", sentence, remedy, get_disk_size(root / name))
    for key, count in Counter(name.lower() for name in agents).items():
        if count > 1:
            names = " and ".join(name for name in agents if name.lower() == key)
            sentence = f"{names} differ in case alone; on some disks they are one folder."
            yield Concern("names_clash", sentence, "Rename one of them, or export it into the other.")


def _check_openness(root: Path) -> Iterator[Concern]:
    """Report that others may write to the home and so replace agents."""
    status = root.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        yield Concern(
            "home_open",
            f"{root} belongs to another user (uid {status.st_uid}), who can put, rename or replace folders of agents.",
            "Use a folder of your own (--root, storage_root).",
        )
    elif status.st_mode & _OTHERS_WRITE:
        yield Concern(
            "home_open",
            f"Other users of this machine may write into {root}: they can put, rename or replace folders of agents.",
            f"chmod go-w {root}",
        )


def examine_sessions(root: Path) -> Iterator[Concern]:
    """Examine the notes of sessions about their agents."""
    folder = root / SESSIONS
    if get_path_type(folder) == "missing":
        return
    agents = {name.lower() for name in agent_names(root)}
    notes = [name for name in names_in(folder) if name.endswith(".json")]
    noted = {name: read_noted_agent(folder / name) for name in notes}
    dangling = Counter(agent for agent in noted.values() if agent and agent.lower() not in agents)
    if broken := [name for name, agent in noted.items() if agent is None]:
        yield Concern(
            "session_broken",
            f"{counted(len(broken), 'session note')} cannot be read; such a session, resumed, asks for its agent "
            "again.",
            "`agent-memory doctor --repair` moves such notes aside.",
            sum(get_disk_size(folder / name) for name in broken),
            tuple(broken[:3]),
        )
    if dangling:
        names = ", ".join(sorted(dangling)[:5])
        yield Concern(
            "session_dangling",
            f"{counted(dangling.total(), 'session remembers', 'sessions remember')} an agent that is not here "
            f"({names}); resumed, it would begin an empty memory.",
            "Put the agent's folder back if it was moved by mistake.",
        )
    if notes:
        sentence = f"{counted(len(notes), 'session note')}: which session used which agent."
        yield Concern("sessions", sentence, size=get_disk_size(folder))


def examine_consent(root: Path) -> Iterator[Concern]:
    """Examine the files by which a person limits memory."""
    folder = Path.cwd()
    for sentence in find_misplaced(folder):
        yield Concern("settings_without_effect", sentence)
    for sentence in find_earlier_settings(folder):
        yield Concern("settings_earlier", sentence)
    rules = ConsentFiles().read([root, *(root / name for name in agent_names(root))], folder)
    for sentence in ConsentState(rules).warnings:
        yield Concern("consent_unreadable", sentence)


def read_noted_agent(path: Path) -> str | None:
    """Return the agent of a session note; None if it is unreadable.

    Empty for a session without an activated agent.
    """
    note = read_json(path) or {}
    name = note.get("agent_id")
    if name is None and "agent_id" in note:
        return ""
    return name if isinstance(name, str) and is_agent_id(name) else None


def examine_parts(*, wants_engine: bool) -> Iterator[Concern]:
    """Examine installed parts; the engine counts only if an agent needs it."""
    shown = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    shown += [f"{name} {version}" for name in _SHOWN_VERSIONS if (version := _get_version(name))]
    yield Concern("parts", f"agent-memory {_get_version(DISTRIBUTION) or '(not installed)'}, {', '.join(shown)}.")
    for extra, without in _WITHOUT.items():
        names = (re.split("[<=>]", requirement)[0] for requirement in REQUIREMENTS[extra])
        missing = [name for name in names if _get_version(name) is None]
        if missing and (extra != "vector" or wants_engine):
            yield Concern("parts_missing", f"Not installed: {', '.join(missing)}; {without}.", advice(extra))
    yield from _check_model()


def _check_model() -> Iterator[Concern]:
    path = find_weights()
    if path is None:
        return
    try:
        with path.open("rb") as weights:
            if hashlib.file_digest(weights, "sha256").hexdigest() == MINILM_SHA256:
                return
        sentence = "The local model is not the expected one; memories are found by words alone."
    except OSError as error:
        sentence = f"The local model cannot be read: {error.strerror}."
    yield Concern("model_broken", sentence, advice("local", reinstall=True), get_disk_size(path))


def _get_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


# -- the examination ------------------------------------------------------------------------------------------------

_HOME_CHECKS: Final[dict[str, FileCheck]] = {
    "home": examine_home, "sessions": examine_sessions, "consent": examine_consent,
}  # fmt: skip
_JOURNAL_CHECKS: Final[dict[str, FileCheck]] = {
    "journal": journal_checks.examine_journal,
    "generation": journal_checks.examine_generation,
    "rejected": CHEAP_CHECKS["rejected"],
    "blobs": file_checks.examine_blobs,
    "tasks": journal_checks.examine_tasks,
    "hidden_conflicts": journal_checks.examine_conflicts,
}
_DERIVED_CHECKS: Final[dict[str, FileCheck]] = {
    "edits": CHEAP_CHECKS["edits"],
    "scratchpad": file_checks.examine_scratchpad,
    "segments": file_checks.examine_segments,
    "index": file_checks.examine_index,
}
"""Checks of files that are derived from the journal of memories alone."""
_AGENT_CHECKS: Final[dict[str, FileCheck]] = {
    "presence": journal_checks.examine_presence,
    "copies": journal_checks.examine_copies,
    "vectors": file_checks.examine_vectors,
    "audit": file_checks.examine_audit,
    "backups": file_checks.examine_backups,
    **CHEAP_CHECKS,
}


def examine(
    root: Path,
    agents: Sequence[str] | None = None,
    *,
    now: datetime,
    settings: ServiceSettings | None = None,
    kinds: Kinds = KINDS,
    progress: Progress | None = None,
) -> HomeReport:
    """Return findings about a storage root and its agents.

    Args:
        root: Folder of all agents.
        agents: Names of agents, all by default.
        now: The present, UTC.
        settings: Settings of sessions, defaults if omitted.
        kinds: Kinds of records that agents keep.
        progress: Called with agent, bytes read and total bytes of a journal.
    """
    settings = settings or ServiceSettings()
    names = agent_names(root) if agents is None else agents
    reports = tuple(
        examine_agent(root, name, now=now, settings=settings, kinds=kinds, progress=progress) for name in names
    )
    wants_engine = any(2 * (report.memories or 0) >= settings.migration_threshold for report in reports)
    parts: dict[str, FileCheck] = {"parts": lambda _: examine_parts(wants_engine=wants_engine)}
    return HomeReport(root, by_area(_run(_HOME_CHECKS | parts, root)), reports)


def examine_agent(
    root: Path,
    agent_id: str,
    *,
    now: datetime,
    settings: ServiceSettings,
    kinds: Kinds = KINDS,
    progress: Progress | None = None,
) -> AgentReport:
    """Return findings about one agent; see `examine`."""
    try:
        folder = folder_of(agent_id, root)
    except AgentMemoryError as error:
        finding = Finding("folder_unusable", error.message, error.recovery)
        return AgentReport(agent_id, root / agent_id, 0, None, (finding,))
    try:
        list(folder.path.iterdir())
        cases = list_cases(folder, settings, now, kinds, None if progress is None else partial(progress, agent_id))
    except _ERRORS as error:
        sentence = f"The folder cannot be read: {_describe(error)}."
        finding = Finding("folder_unusable", sentence, "Check its permissions.")
        return AgentReport(folder.agent_id, folder.path, 0, None, (finding,))
    findings = [finding for case in cases for finding in examine_case(case)]
    memories = None if cases[0].journal.file.trouble else cases[0].survey.count
    return AgentReport(folder.agent_id, folder.path, get_disk_size(folder.path), memories, by_area(findings))


def examine_case(case: JournalCase) -> list[Finding]:
    """Return findings about a journal with its derived files and folder."""
    checks = dict(_JOURNAL_CHECKS)
    if case.path == case.folder.journal:
        checks |= _DERIVED_CHECKS
    if case.is_first:
        checks |= _AGENT_CHECKS
    return [*_run(checks, case), *_run(_find_registered(case), case)]


def _find_registered(case: JournalCase) -> dict[str, FileCheck]:
    """Return checks of feature packages for a journal.

    With the first journal also those for the folder of pages.
    """
    files = {case.path.name}
    if case.is_first:
        files |= {TOPICS} & set(names_in(case.folder.path))
    checks = {name: check.place for name, check in CHECKS.items() if check.file in files}
    return {name: lambda case, place=place: load_handler(place)(case) for name, place in checks.items()}


def _run(checks: Mapping[str, FileCheck], subject: object) -> Iterator[Finding]:
    for name, check in checks.items():
        try:
            for concern in check(subject):
                yield Finding(concern.code, concern.sentence, concern.advice, concern.size, concern.details)
        except _ERRORS as error:
            sentence = f"The examination of {name} failed: {_describe(error)}."
            advice = error.recovery if isinstance(error, AgentMemoryError) else "Please report this."
            yield Finding("not_examined", sentence, advice)


def _describe(error: BaseException) -> str:
    text = error.message if isinstance(error, AgentMemoryError) else str(error) or type(error).__name__
    return " ".join(text.split())[:200].rstrip(".")
