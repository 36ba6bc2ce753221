"""What a program did to files, in the order in which it was done. The recorders write it, the disk model replays it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Doing = Literal["create", "write", "truncate", "sync", "sync_failed", "mkdir", "rename", "unlink", "ack"]
State = dict[str, dict[str, Any]]
"""What must be there: memory id to its record."""
Names = tuple[str, ...]
NONE: State = {}


@dataclass(frozen=True, slots=True)
class Event:
    """One step.

    Attributes:
        do: What was done; `sync` is of a file or of a folder, `unlink` also removes folders.
        path: To which file, relative to the watched folder, with `/`; the label of an acknowledgement.
        other: The new name of a rename.
        data: Bytes written.
        at: Offset of a write, size of a truncation.
        state: Of an acknowledgement: what the caller may rely upon from now on.
        atomic: Of an acknowledgement: what it is about happens wholly or not at all.
        durable: Of an acknowledgement: further files, beside the journals, that must be on the disk.
        refused: Of an acknowledgement: what was tried before it and refused, and may be there or not.
    """

    do: Doing
    path: str
    other: str = ""
    data: bytes = b""
    at: int = 0
    state: State = field(default_factory=dict)
    atomic: bool = True
    durable: tuple[str, ...] = ()
    refused: State = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it in a few words, for people who look for the gap."""
        more = {"rename": f" -> {self.other}", "write": f" {len(self.data)} bytes at {self.at}"}
        return f"{self.do} {self.path}{more.get(self.do, '')}"


def swapped(first: str, second: str) -> list[tuple[str, str]]:
    """Return a swap of two names as renames, which is what a disk may be left in between of at worst."""
    between = f"{first}.between"
    return [(first, between), (second, first), (between, second)]
