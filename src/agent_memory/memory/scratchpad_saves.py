"""The scratchpad's file as a thing on the disk: what a person saved there is looked at, replaced and set aside.

A rendering takes the file's place; what was in it comes out under a hidden name and goes only once it is known to hold
nothing that was not taken over. So a save is never overwritten, however close it comes, and after a crash what came out
is still there for the next look. Blocking: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import is_encrypted, key_for
from agent_memory.errors import BusyError, ValidationError
from agent_memory.files.aside import set_aside
from agent_memory.files.atomic import (
    make_private_folder,
    replace_file,
    translated,
)
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import names_of, size_of
from agent_memory.files.exchange import put_in_place
from agent_memory.files.names import STAMP, aside_path, moment_of, sort_of
from agent_memory.files.settled import read_settled
from agent_memory.files.wording import counted
from agent_memory.memory.scratchpad_file import PadEdits, read_edits
from agent_memory.redaction import Redactor, SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from agent_memory.models import Clock

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of a file that is read; a larger one is left alone. A hundred of the longest entries take a quarter."""
KEPT: Final = timedelta(days=30)
"""How long a file set aside stays, as replaced and deleted memories do in the journal."""
_REDACTED_AT_ONCE: Final = 20_000
"""Characters; entries are kept whole as long as one is not longer."""
_ENTRY: Final = re.compile(r"^(?=- )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Save:
    """What was saved by hand.

    Attributes:
        path: Where it lies.
        content: What is in it.
        changed_at: When it was, in seconds since 1970.
        edits: What it changes.
        problem: Why it is no scratchpad, or None.
    """

    path: Path
    content: bytes
    changed_at: float
    edits: PadEdits
    problem: ValidationError | None = None

    @property
    def says_something(self) -> bool:
        """Whether there is anything to take over or to set aside."""
        return self.problem is not None or bool(self.edits)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the folder found: saves to be taken over, the oldest first, and the file's content, if any."""

    saves: tuple[Save, ...] = ()
    content: bytes | None = None


class PadFile:
    """scratchpad.yaml of one agent.

    Args:
        path: The file.
        clock: Source of the present, for the names of what is set aside.
        redactor: Takes secrets out of what is set aside; the built-in one when omitted.
        patience: Seconds to wait for a program that is in the middle of writing the file.
    """

    def __init__(self, path: Path, clock: Clock, redactor: Redactor | None = None, *, patience: float = 0.5) -> None:
        self.path = path
        self._clock = clock
        self._redactor = redactor or SecretRedactor()
        self._patience = patience

    def look(self, *, patience: float | None = None, remove: bool = False) -> Look:
        """Return what waits to be taken over.

        Args:
            patience: Seconds to wait for a program that is in the middle of writing; that of the object if omitted.
            remove: Remove what came out of the file's place and says nothing. Only for who holds the turn: a rendering
                that is about to take its place lies under such a name, too.

        Raises:
            BusyError: A program is writing the file at this moment.
            StorageError: The file is there but cannot be read.
        """
        found: list[Save] = []
        with translated(self.path, "read"):
            for old in self._olds():
                # Another process is faster, or one still writes.
                with contextlib.suppress(FileNotFoundError, BusyError):
                    save = self._read(old, patience)
                    if save.says_something:
                        found.append(save)
                    elif remove:
                        old.unlink()
            try:
                current = self._read(self.path, patience)
            except FileNotFoundError:
                return Look(tuple(found))
        return Look((*found, current) if current.says_something else tuple(found), current.content)

    def replace(self, text: str, absorbed: bytes | None) -> bool:
        """Render `text` in the place of `absorbed`; tell whether nothing else was there.

        Args:
            text: The new content.
            absorbed: What the file is known to hold, all of it taken over; None if there is no file.

        Returns:
            False if something else was there: look again, take it over, and render what is true then.

        Raises:
            StorageError: It could not be written; what was there is there.
        """
        if is_encrypted(self.path.parent):  # shown to the agent, and in no file
            if absorbed is not None:
                self.withdraw(absorbed)
            return True
        content = text.encode()
        make_private_folder(self.path.parent)
        with translated(self.path, "write"):
            try:
                current, _ = self._settled(self.path)
            except FileNotFoundError:
                current = None
            if current == content:
                return True
            if current != absorbed:
                return False
            new = self._free_old()
            replace_file(new, content, durable=False)
            try:
                put_in_place(new, self.path, self._free_old)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
            return self._came_out(absorbed)

    def _came_out(self, absorbed: bytes | None) -> bool:
        """Remove what came out, as far as it was taken over."""
        nothing_else = True
        for old in self._olds():
            try:
                known = self._settled(old)[0] == absorbed
            except FileNotFoundError:
                continue
            except BusyError:
                known = False
            if known:
                old.unlink(missing_ok=True)
            nothing_else = nothing_else and known
        return nothing_else

    def withdraw(self, absorbed: bytes) -> None:
        """Take a file away whose edits were all taken over and that could not be rendered anew: that needs no room.

        Left in its place they would be taken over once more, and bring back what is forgotten in between. A save that
        comes at this moment stays under a hidden name, for the next look.

        Raises:
            StorageError: It is where it was.
        """
        with translated(self.path, "remove"), contextlib.suppress(FileNotFoundError):
            if self._settled(self.path)[0] == absorbed:
                self.path.rename(self._free_old())
                self._came_out(absorbed)

    def discard(self, save: Save) -> None:
        """Remove what came out of the file's place and was taken over; the file itself stays until it is replaced."""
        if save.path != self.path:
            with translated(save.path, "remove"):
                save.path.unlink(missing_ok=True)

    def take_out(self) -> Save:
        """Move the file to a hidden name, so that it is not rendered over, and return what is in it.

        Raises:
            StorageError: There is none, or it cannot be moved.
        """
        old = self._free_old()
        with translated(self.path, "set aside"):
            self.path.rename(old)
            return self._read(old)

    def keep_aside(self, content: bytes) -> str:
        """Write down, without secrets, what could not be taken over, and return the name; synced.

        Raises:
            StorageError: It could not be written.
        """
        kept = self._without_secrets(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        aside, key = aside_path(self.path, "broken", f"{self._clock():{STAMP}}"), key_for(self.path.parent)
        with translated(self.path, "set aside"):
            return set_aside(self.path, aside, kept if key is None else key.encrypted(aside.name, kept)).name

    def remove_expired(self) -> None:
        """Remove what was set aside more than 30 days ago: it holds words that may have been forgotten since."""
        now = self._clock()
        with contextlib.suppress(OSError):  # what cannot be removed now may be the next time
            for name in names_of(self.path.parent, "broken_pad"):
                if (moment := moment_of(name)) and moment < now - KEPT:
                    self.path.with_name(name).unlink()

    def _read(self, path: Path, patience: float | None = None) -> Save:
        content, changed_at = self._settled(path, patience)
        text = content.decode("utf-8", "surrogateescape")
        text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Windows and old Macs end lines
        try:
            return Save(path, content, changed_at, read_edits(text))
        except ValidationError as error:
            return Save(path, content, changed_at, PadEdits(), error)

    def _settled(self, path: Path, patience: float | None = None) -> tuple[bytes, float]:
        """Return what is in a file that no program is writing, and when it was changed.

        Raises:
            BusyError: A program has it open for writing all the time.
            StorageError: It is so large that it is not read.
        """
        return read_settled(path, self._patience if patience is None else patience, MAX_BYTES)

    def _olds(self) -> list[Path]:
        """Return what came out of the file's place, the oldest first."""
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if sort_of(entry.name) == "taken_out":
                    with contextlib.suppress(FileNotFoundError):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
        return [self.path.with_name(name) for _, name in sorted(found)]

    def _free_old(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.old")

    def _without_secrets(self, text: str) -> str:
        return "".join(self._redactor.redact(part).text for part in _parts(text))


def of_kept(path: Path, now: datetime) -> Iterator[Concern]:
    """Yield the copies of scratchpad.yaml that were set aside; costs a look at the folder."""
    sizes = {name: size_of(path.with_name(name)) for name in names_of(path.parent, "broken_pad")}
    recent = [name for name in sizes if (moment := moment_of(name)) and now - moment < KEPT]
    if recent:
        yield Concern(
            "scratchpad_kept",
            f"An edit of scratchpad.yaml could not be taken over; it is kept as {recent[-1]}.",
            "Look whether anything in it is worth storing; then delete it.",
            sum(map(sizes.__getitem__, recent)),
            tuple(recent[-3:]),
        )
    if older := [name for name in sizes if name not in recent]:
        yield Concern(
            "scratchpad_aside",
            f"{counted(len(older), 'scratchpad')} kept aside, because something a person wrote there was refused.",
            "Look whether anything in them is worth storing; then delete them.",
            sum(map(sizes.__getitem__, older)),
            tuple(older[:3]),
        )


def _parts(text: str) -> Iterator[str]:
    """Yield the text in parts that begin with an entry: looking for secrets in all of it at once takes far longer."""
    part = ""
    for entry in _ENTRY.split(text):
        if part and len(part) + len(entry) > _REDACTED_AT_ONCE:
            yield part
            part = ""
        part += entry
    yield part
