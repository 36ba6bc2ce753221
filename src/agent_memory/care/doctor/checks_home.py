"""Examine the home of all agents: folders, sessions, installed parts."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sqlite3
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.care.agents import unfinished_agents
from agent_memory.embeddings.local import MINILM_SHA256, find_weights
from agent_memory.files.atomic import read_json
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import kind_of, names_in, size_of
from agent_memory.files.layout import is_agent_id
from agent_memory.files.names import JOURNAL, SESSIONS
from agent_memory.files.wording import counted, human
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_misplaced
from agent_memory.settings.installation import REQUIREMENTS, advice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.settings.installation import Part

_DISTRIBUTION: Final = "amplifier-bundle-agent-memory"
_WITHOUT: Final[dict[Part, str]] = {
    "local": "memories are found by words, not by meaning",
    "vector": "memories are found from the files, however many there are",
}
"""What holds without an extra."""
_OTHERS_WRITE: Final = 0o022
_SHOWN_VERSIONS: Final = ("onnxruntime", "qdrant-edge-py")


def agent_names(root: Path) -> list[str]:
    """Return names of non-empty folders below `root` that should be agents."""
    return [name for name in names_in(root) if is_agent_id(name) and kind_of(root / name) in {"folder", "link"}]


def examine_home(root: Path) -> Iterator[Concern]:
    """Look at the folder of all agents."""
    kind = kind_of(root, follow=True)
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
    yield Concern("home", f"{counted(len(agents), 'agent')}, {human(free)} free.", size=size_of(root))
    yield from _openness(root)
    for name in entries:
        if name not in agents and not name.startswith((".", "_")) and (root / name / JOURNAL).is_file():
            yield Concern(
                "name_unusable",
                f"The folder {name!r} has memories, but no agent can have that name.",
                "Rename it: letters, digits, '_' and '-', beginning with a letter or digit.",
                size_of(root / name),
            )
    yield from _unfinished(unfinished)
    twins = [key for key, count in Counter(name.lower() for name in agents).items() if count > 1]
    for twin in twins:
        both = " and ".join(name for name in agents if name.lower() == twin)
        yield Concern(
            "names_clash",
            f"{both} differ in case alone; on some disks they are one folder.",
            "Rename one of them, or export it into the other.",
        )


def _openness(root: Path) -> Iterator[Concern]:
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


def _unfinished(folders: list[Path]) -> Iterator[Concern]:
    if folders:
        yield Concern(
            "agents_unfinished",
            f"{counted(len(folders), 'folder')} of an agent whose deletion or copying was interrupted; memories are "
            "still in there.",
            "`agent-memory agents` removes such folders.",
            sum(map(size_of, folders)),
            tuple(path.name for path in folders[:3]),
        )


def examine_sessions(root: Path) -> Iterator[Concern]:
    """Look at the notes which session used which agent."""
    folder = root / SESSIONS
    if kind_of(folder) == "missing":
        return
    agents = {name.lower() for name in agent_names(root)}
    notes = [name for name in names_in(folder) if name.endswith(".json")]
    broken, dangling = [], Counter[str]()
    for name in notes:
        agent = noted_agent(folder / name)
        if agent is None:
            broken.append(name)
        elif agent and agent.lower() not in agents:
            dangling[agent] += 1
    if broken:
        yield Concern(
            "session_broken",
            f"{counted(len(broken), 'session note')} cannot be read; such a session, resumed, asks for its agent "
            "again.",
            "`agent-memory doctor --repair` moves such notes aside.",
            sum(size_of(folder / name) for name in broken),
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
        yield Concern(
            "sessions", f"{counted(len(notes), 'session note')}: which session used which agent.", size=size_of(folder)
        )


def examine_consent(root: Path) -> Iterator[Concern]:
    """Check the files by which a person limits memory."""
    folder = Path.cwd()
    for sentence in find_misplaced(folder):
        yield Concern("settings_without_effect", sentence)
    rules = ConsentFiles().read([root, *(root / name for name in agent_names(root))], folder)
    for sentence in ConsentState(rules).warnings:
        yield Concern("consent_unreadable", sentence)


def noted_agent(path: Path) -> str | None:
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
    shown += [f"{name} {version}" for name in _SHOWN_VERSIONS if (version := _version(name))]
    yield Concern("parts", f"agent-memory {_version(_DISTRIBUTION) or '(not installed)'}, {', '.join(shown)}.")
    for extra, without in _WITHOUT.items():
        names = (re.split("[<=>]", requirement)[0] for requirement in REQUIREMENTS[extra])
        missing = [name for name in names if _version(name) is None]
        if missing and (extra != "vector" or wants_engine):
            what = f"Not installed: {', '.join(missing)}; {without}."
            yield Concern("parts_missing", what, advice(extra))
    yield from _model()


def _model() -> Iterator[Concern]:
    path = find_weights()
    if path is None:
        return
    try:
        with path.open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
    except OSError as error:
        yield Concern(
            "model_broken", f"The local model cannot be read: {error.strerror}.", advice("local", reinstall=True)
        )
    else:
        if digest != MINILM_SHA256:
            what = "The local model is not the expected one; memories are found by words alone."
            yield Concern("model_broken", what, advice("local", reinstall=True), size_of(path))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
