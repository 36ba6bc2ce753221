"""State of the turn of each open session.

Hooks write it, the server reads it. Each session has a private file below `derived`: a purge deletes it, no backup has
it. A lost file is taken for a conversation with untrusted text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.layout import find_project_root
from agent_memory.files.lock import index_lock, only_one
from agent_memory.files.names import DERIVED, ENCRYPTION
from agent_memory.integrations.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FOLDER: Final = "turns"
_HOSTS: Final = "_mcp"
_PROBLEM: Final = "problem.txt"
_OPEN_SECONDS: Final = 12 * 3_600
"""A session without a report for so long counts as ended."""
_LOCK_SECONDS: Final = 2.0
_MAX_TYPED: Final = 100
_MAX_STORED: Final = 100
UNKNOWN: Final = "what was read before the hooks"
SEVERAL: Final = "one of two open sessions of this project"


@dataclass(slots=True)
class TypedText:
    """Text that a user typed and that waits for capture.

    Attributes:
        text: Text without secrets.
        at: Time in seconds since 1970.
        is_tainted: True if untrusted text was in the conversation then.
    """

    text: str
    at: float
    is_tainted: bool


@dataclass(slots=True)
class HookTurn:
    """State of a session's turn.

    Attributes:
        host, session_id: Key of the session.
        project: Path of the project's root in which it began.
        turns: Number of prompts so far.
        prompt, prompt_before: What the user typed in this turn and the one before, without secrets.
        tainted_by: Name of the tool that brought untrusted text, or None.
        is_of_project: True if all of it is output of the project.
        is_stopped: True if the user asked to store nothing.
        is_due: True if the typed texts are to be captured now.
        is_ended: True if the session ended.
        typed: Texts that wait for capture.
        stored: Contents that the model stored.
    """

    host: str
    project: str
    session_id: str
    turns: int = 0
    prompt: str = ""
    prompt_before: str = ""
    tainted_by: str | None = None
    is_of_project: bool = False
    is_stopped: bool = False
    is_due: bool = False
    is_ended: bool = False
    typed: list[TypedText] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    def note(self, by: str, *, is_of_project: bool = False) -> None:
        """Note that untrusted text came in."""
        taint = Taint()
        if self.tainted_by is not None:
            taint.restore(self.tainted_by, "", is_of_project=self.is_of_project)
        taint.note(by, is_of_project=is_of_project)
        self.tainted_by, self.is_of_project = taint.by, taint.is_of_project

    def begin(self, prompt: str, now: float, *, is_captured: bool) -> None:
        """Start a turn with what the user typed."""
        self.turns += 1
        self.prompt_before, self.prompt = self.prompt, prompt
        if is_captured and prompt:
            self.typed = [*self.typed, TypedText(prompt, now, self.tainted_by is not None)][-_MAX_TYPED:]

    def note_stored(self, contents: list[str]) -> None:
        """Note what the model stored, so that capture does not repeat it."""
        self.stored = [*self.stored, *contents][-_MAX_STORED:]


class TurnFiles:
    """Files of the turns of one agent.

    Args:
        folder: Folder of the agent.
    """

    def __init__(self, folder: Path) -> None:
        self._agent, self._folder = folder, folder / DERIVED / FOLDER

    @property
    def may_hold_text(self) -> bool:
        """True unless the agent's files are encrypted: these are not."""
        return not (self._agent / ENCRYPTION).exists()

    @contextlib.contextmanager
    def edit(self, host: str, project: str, session_id: str) -> Iterator[HookTurn]:
        """Yield the state of a session, and write it afterwards.

        A session keeps the project that it began in.

        Raises:
            StorageError: It cannot be written.
        """
        make_private_folder(self._folder)
        path = self._path(host, session_id)
        with index_lock(self._folder / "lock", "state of the turn", _LOCK_SECONDS):
            turn = _read_turn(path)
            if turn is None:
                turn = HookTurn(host, project, session_id, tainted_by=UNKNOWN)
            yield turn
            with translated(path, "write"):
                if turn.is_ended and not turn.typed:
                    path.unlink(missing_ok=True)
                else:
                    replace_file(path, json.dumps(asdict(turn)).encode(), durable=False)

    def drop(self, host: str, session_id: str) -> None:
        """Delete the state of a session."""
        self._path(host, session_id).unlink(missing_ok=True)

    def start(self, host: str, project: str, session_id: str, *, is_cleared: bool) -> None:
        """Begin a session; one that is open keeps its state.

        Args:
            host: Name of the host.
            project: Path of the project's root.
            session_id: ID of the session.
            is_cleared: True if the conversation of an open session was emptied.
        """
        path = self._path(host, session_id)
        known = _read_turn(path)
        if known is not None and not (is_cleared or known.is_ended) and _is_fresh(path):
            return
        self.drop(host, session_id)
        with self.edit(host, project, session_id) as turn:
            turn.tainted_by = None

    def change_open(self, host: str, project: str, change: Callable[[HookTurn], None]) -> None:
        """Change the state of a host's open sessions in a project."""
        for turn in self._list_open(host, project):
            with self.edit(turn.host, turn.project, turn.session_id) as current:
                change(current)

    def find_open(self, host: str, project: str) -> HookTurn | None:
        """Return the state of a host's open session in a project.

        Of several sessions nothing counts as typed, and the limits of each hold. None if no prompt was reported.
        """
        turns = self._list_open(host, project)
        if len(turns) < 2:  # noqa: PLR2004 - one or none
            return turns[0] if turns else None
        is_stopped = any(turn.is_stopped for turn in turns)
        return HookTurn(host, project, "", sum(turn.turns for turn in turns), tainted_by=SEVERAL, is_stopped=is_stopped)

    def list_due(self) -> list[HookTurn]:
        """Return sessions whose typed texts are to be captured."""
        return [turn for path, turn in self._load() if turn.is_due or turn.is_ended or not _is_fresh(path)]

    def has_due(self) -> bool:
        """Return True if typed texts are to be captured."""
        return any(turn.typed for turn in self.list_due())

    def finish_capture(self, turn: HookTurn) -> None:
        """Remove captured texts; another process may have added some."""
        with self.edit(turn.host, turn.project, turn.session_id) as current:
            current.typed = current.typed[len(turn.typed) :]
            current.is_due = False
            current.is_ended |= turn.is_ended

    def note_problem(self, problem: str) -> None:
        """Note a failure in the background, for the next session."""
        (self._folder / _PROBLEM).write_text(problem)

    def take_problem(self) -> str:
        """Return the noted failure once; empty without one."""
        path = self._folder / _PROBLEM
        if not path.exists():
            return ""
        problem = path.read_text()
        path.unlink()
        return problem

    @contextlib.contextmanager
    def hold_capture(self) -> Iterator[bool]:
        """Try to be the only process that captures; yield success."""
        with only_one(self._folder / "capture.lock") as is_ours:
            yield is_ours

    def note_seen(self, host: str, sign: str) -> None:
        """Note that hooks or server of a host were here.

        Args:
            host: Name of the host.
            sign: `hooks` or `server`.
        """
        make_private_folder(self._folder)
        (self._folder / f"{host or 'unknown'}.{sign}").touch(mode=0o600)

    def list_hosts(self) -> dict[str, str]:
        """Return the hosts that the server had, `active` or `missing` for hooks."""
        servers = sorted(self._folder.glob("*.server"))
        return {path.stem: "active" if path.with_suffix(".hooks").exists() else "missing" for path in servers}

    def _list_open(self, host: str, project: str) -> list[HookTurn]:
        return [
            turn
            for path, turn in self._load()
            if (turn.host, turn.project) == (host, project) and turn.turns and not turn.is_ended and _is_fresh(path)
        ]

    def _load(self) -> list[tuple[Path, HookTurn]]:
        turns = [(path, _read_turn(path)) for path in sorted(self._folder.glob("*.json"))]
        return [(path, turn) for path, turn in turns if turn is not None]

    def _path(self, host: str, session_id: str) -> Path:
        key = json.dumps([host, session_id]).encode()
        return self._folder / f"{hashlib.sha256(key).hexdigest()[:24]}.json"


def limit_host(root: Path, host: str, *, is_project_only: bool) -> None:
    """Note for the hooks whether a host has its own project alone.

    Args:
        root: Folder of all agents.
        host: Name of the host.
        is_project_only: True if it sees its own project alone.
    """
    sign = root / _HOSTS / f"{host}.project-only"
    if is_project_only:
        make_private_folder(sign.parent)
        sign.touch(mode=0o600)
    else:
        sign.unlink(missing_ok=True)


def is_host_limited(root: Path, host: str) -> bool:
    """Return True if a host has its own project alone."""
    return (root / _HOSTS / f"{host}.project-only").exists()


def find_project(folder: Path) -> str:
    """Return the path of the project around a folder, as a key."""
    return str(find_project_root(folder) or folder)


def _is_fresh(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime < _OPEN_SECONDS
    return False


def _read_turn(path: Path) -> HookTurn | None:
    """Return the state in a file, None if it cannot be used."""
    try:
        values = json.loads(path.read_bytes())
        known = {name.name for name in fields(HookTurn)}
        turn = HookTurn(**{name: value for name, value in values.items() if name in known})
        turn.typed = [TypedText(**text) for text in values.get("typed", ())]
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return turn
