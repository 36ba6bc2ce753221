"""`CurrentNote`: the records being worked on, to count deaths against them.

One small file, written in place and not synced: it outlives a killed process. A power cut may lose it, which costs one
more death until a record is read alone.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import open_private, read_file
from agent_memory.files.held import unlock_and_close
from agent_memory.files.processes import ProcessIdentity, get_own_identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MOST_COUNTED: Final = 1_000
"""Records whose deaths are counted; of more the oldest are forgotten."""
_DECODER: Final = json.JSONDecoder()


class CurrentNote:
    """The note of one agent.

    Args:
        path: The file; its folder may not exist yet, and then nothing is noted.

    Attributes:
        deaths: In how many deaths of a process a record was current, by its id.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1
        self._owner = ""
        self._current: list[str] = []
        self.deaths: dict[str, int] = {}

    @contextlib.contextmanager
    def open_note(self) -> Iterator[None]:
        """Count earlier deaths; keep the note open for the block.

        If the block is cancelled, the work may continue in its thread: the note is removed when the process ends well.
        """
        self._owner = _name_process()
        self._count_deaths()
        try:
            self._descriptor = open_private(self._path, os.O_WRONLY | os.O_CREAT)
        except OSError:
            self._descriptor = -1  # a folder that cannot be written: a death is not counted
        try:
            self._write()
            yield
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                unlock_and_close(descriptor)
            if not self._current:
                self._remove_if_empty()

    @contextlib.contextmanager
    def naming(self, record_ids: Sequence[str]) -> Iterator[None]:
        """Name records as current; they stay named after a cancellation."""
        self.set_current(record_ids)
        try:
            yield
        except Exception:
            self.set_current(())
            raise
        except BaseException:
            atexit.register(self._end)
            raise
        self.set_current(())

    def set_current(self, record_ids: Sequence[str]) -> None:
        """Name the current records; none if empty."""
        self._current = list(record_ids)
        self._write()

    def forget_deaths(self) -> None:
        """Count no death against any record."""
        if self.deaths:
            self.deaths = {}
            self._write()

    def _count_deaths(self) -> None:
        note = _read_note(self._path)
        self.deaths = {str(identifier): int(count) for identifier, count in note.get("deaths", {}).items()}
        owner = ProcessIdentity.from_json(note.get("owner", ""))
        if owner is not None and owner.has_ended():
            for record_id in note.get("current", []):
                self.deaths[record_id] = self.deaths.get(record_id, 0) + 1
        self.deaths = dict([*self.deaths.items()][-_MOST_COUNTED:])
        self._current = []

    def _write(self) -> None:
        if self._descriptor < 0:
            return
        note = {"owner": self._owner, "current": self._current, "deaths": self.deaths}
        content = json.dumps(note).encode()
        with contextlib.suppress(OSError):  # a full disk: a death is not counted
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))

    def _remove_if_empty(self) -> None:
        if not self.deaths:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _end(self) -> None:
        """Remove the note of cancelled work."""
        if _read_note(self._path).get("owner") == self._owner == _name_process():
            self._current = []
            with self.open_note():
                pass


def _name_process() -> str:
    """Return this process's name; empty if unknown, which counts no death."""
    identity = get_own_identity()
    return "" if identity is None else identity.to_json()


def _read_note(path: Path) -> dict[str, Any]:
    """Return the content of a note, empty if unreadable."""
    try:
        note, _ = _DECODER.raw_decode(read_file(path).decode())  # behind it may be the rest of a longer one
        return {
            "owner": str(note["owner"]),
            "current": [str(record_id) for record_id in note["current"]],
            "deaths": {str(record_id): int(count) for record_id, count in note["deaths"].items()},
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
