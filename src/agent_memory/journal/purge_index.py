"""`PurgeIndex`: what a list of purges says, as it is asked for.

A list is read again when it or its key has changed. What was read is kept for all who ask in this process: each journal
of a folder does.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import shlex
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_file, signature, translated
from agent_memory.files.layout import build_command
from agent_memory.files.names import AGENT, PURGE_KEY, PURGED
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import PurgeState, checksum_key, read_purge_state
from agent_memory.journal.format import MalformedLineError, decode_line, sealed
from agent_memory.journal.stretches import Stretches
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REJECTED: Final = "rejected"
"""The step of a line that is no purge's; a version that does not know it takes the line for nothing."""
KEY_BYTES: Final = 32
_MOST_READ: Final = 64


@dataclass(frozen=True, slots=True)
class Purge:
    """One purge as the list has it.

    Attributes:
        id: ID of the purge.
        at: When it was begun, as text.
        ids: IDs of the purged records.
        fingerprints: Hexadecimal signatures of their texts.
        resting: Those of the records that went since they rested on the others; the same id may be made again of what
            is said later.
        stretches: Of their texts, by the number of words; see `Stretches`. None in lists of earlier versions.
        sums: Of the words of these, by their number; see `StretchSums`. None in lists of earlier versions.
        receipt: What it came to; None while it is unfinished.
    """

    id: str
    at: str
    ids: tuple[str, ...]
    fingerprints: tuple[str, ...]
    resting: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None
    stretches: Mapping[int, Sequence[str]] = field(default_factory=dict)
    sums: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def moment(self) -> float:
        """Seconds since 1970 of `at`; infinite if that cannot be read."""
        return to_seconds(self.at) or math.inf


@dataclass(slots=True)
class PurgeIndex:
    """Content of the purge list, cached until the file or key changes.

    Attributes:
        ids, fingerprints: Each with the moment of its last purge, in seconds since 1970.
        lasting: Those of the ids that may not be made again.
    """

    looked: tuple[object, object] = (None, None)
    key: bytes = b""
    purges: dict[str, Purge] = field(default_factory=dict)
    ids: dict[str, float] = field(default_factory=dict)
    lasting: set[str] = field(default_factory=set)
    fingerprints: dict[str, float] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    stretches: Stretches = field(default_factory=Stretches)

    @property
    def has_any(self) -> bool:
        """Whether anything is listed, for which the key is needed."""
        return bool(self.purges or self.rejected)

    @property
    def state(self) -> PurgeState | None:
        """How long the list is, for `agent.yaml`; None if nothing was purged or the key is missing."""
        return (
            PurgeState(len(self.purges), next(reversed(self.purges)), checksum_key(self.key))
            if self.purges and self.key
            else None
        )

    def holds(self, noted: PurgeState) -> bool:
        """Return True if the list has all purges that were noted."""
        return len(self.purges) >= noted.count and noted.last in self.purges

    def has(self, text: str, moment: float = 0.0) -> bool:
        """See `PurgeList.has`."""
        return bool(self.key) and self.fingerprints.get(make_fingerprint(self.key, text), -1.0) >= moment

    def drops(self, record_id: str, moment: float, *, is_returned: bool) -> bool:
        """Return True if a journal's change of a record is purged.

        Args:
            record_id: Of a record that was purged.
            moment: When the line was written, in seconds since 1970.
            is_returned: Whether the line may be of a time before the purge, although a purge cleans each journal.
        """
        if is_returned:
            return record_id in self.lasting or moment <= self.ids[record_id]
        return record_id in self.lasting and moment < self.ids[record_id]

    def index(self) -> None:
        """Build the lookups; the last purge of an ID or text counts."""
        signed: dict[int, dict[str, float]] = {}
        sums: dict[int, set[int] | None] = {}
        for purge in sorted(self.purges.values(), key=lambda purge: purge.moment):
            moment = purge.moment
            self.ids |= dict.fromkeys(purge.ids, moment)
            self.lasting.update(set(purge.ids).difference(purge.resting))
            self.fingerprints |= dict.fromkeys(purge.fingerprints, moment)
            for count, signatures in purge.stretches.items():
                signed.setdefault(count, {}).update(dict.fromkeys(signatures, moment))
                known = sums.setdefault(count, set())
                if known is not None and count in purge.sums:
                    known.update(purge.sums[count])
                else:
                    sums[count] = None
        self.stretches = Stretches(self.key, signed, sums={count: known for count, known in sums.items() if known})


_READ: Final[dict[Path, PurgeIndex]] = {}
"""What was read last, by the path of the list."""


def read_purges(path: Path, key_path: Path) -> PurgeIndex:
    """Return the current index of a purge list.

    Raises:
        StorageError: It cannot be read, or purges that `agent.yaml` counts are not in it.
    """
    noted = read_purge_state(path.parent)  # before the list, which is written first
    looked = (signature(path), signature(key_path))
    read = _READ.get(path)
    if read is None or read.looked != looked:
        with translated(path, "read"):
            content = read_file(path) if looked[0] is not None else b""
        key = b""
        with contextlib.suppress(StorageError):  # `PurgeList.check_key` says so
            key = read_key(key_path) if content.strip() else b""
        read = parse_purges(content, key, path)
        read.looked = looked
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        _READ[path] = read
    if noted is not None and not read.holds(noted):
        raise _incomplete(path, noted, len(read.purges))
    return read


def parse_purges(content: bytes, key: bytes, path: Path) -> PurgeIndex:
    """Return the index of a purge list that was read.

    Args:
        content: Bytes of the list.
        key: Key of the list; empty if it is missing.
        path: File of the list, for errors.

    Raises:
        StorageError: A line is damaged.
    """
    read = PurgeIndex()
    for line in content.split(b"\n"):
        _take(read, line, path)
    if read.has_any:
        read.key = key
        read.index()
    return read


def _incomplete(path: Path, noted: PurgeState, count: int) -> StorageError:
    """Return the error for a list without purges that `agent.yaml` counts."""
    what = "is missing or empty" if not count else f"has {counted(count, 'purge')}"
    return StorageError(
        f"{path.name}, the list of what was purged from {path.parent.name}, {what}; {AGENT} counts "
        f"{counted(noted.count, 'purge')}. Nothing was read or changed.",
        code="purge_list",
        recovery=hint_purges(path.parent),
        path=path,
    )


def hint_purges(folder: Path) -> str:
    """Return what to do if the purge list of an agent, or its key, cannot be used."""
    repair = build_command(folder.parent, "doctor --repair -a", shlex.quote(folder.name))
    return f"Run {repair} to take {PURGED} and {PURGE_KEY} from a backup, or put both back from a copy of the folder."


def to_seconds(moment: object) -> float:
    """Return a moment as seconds since 1970; 0 if invalid."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _take(read: PurgeIndex, line: bytes, path: Path) -> None:
    purges = read.purges
    if not _is_whole(line):
        return  # a process died while writing it: what it began was not acknowledged
    try:
        value = _decode_sealed(line)
    except MalformedLineError as error:
        raise StorageError(
            f"{path.name}, the list of what was purged, is damaged: {error}. Nothing was read or changed.",
            code="purge_list",
            recovery=hint_purges(path.parent),
            path=path,
        ) from None
    try:
        purge_id, at = str(value["purge"]), str(value["at"])
        if value["step"] == REJECTED:
            read.rejected |= set(value["fingerprints"])
        elif value["step"] == "begun":
            signed = {int(count): tuple(map(str, some)) for count, some in value.get("stretches", {}).items()}
            ids, texts, resting = (tuple(value.get(name, ())) for name in ("ids", "fingerprints", "resting"))
            sums = {int(count): tuple(map(int, some)) for count, some in value.get("sums", {}).items()}
            purges[purge_id] = Purge(purge_id, at, ids, texts, resting, stretches=signed, sums=sums)
        elif (known := purges.get(purge_id)) is not None:
            purges[purge_id] = replace(known, receipt=dict(value["receipt"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return  # of a newer version


def _decode_sealed(line: bytes) -> dict[str, Any]:
    """Return the mapping in a line, which must have a checksum."""
    if sealed(line) != line:
        raise MalformedLineError("a line has no checksum")
    return decode_line(line)


def _is_whole(line: bytes) -> bool:
    return line.strip(b"\0 \r").endswith(b"}")


def make_fingerprint(key: bytes, text: str) -> str:
    """Return the hexadecimal signature of a text.

    Case, width and white space are folded before.
    """
    return hmac.new(key, folded_text(text), hashlib.sha256).hexdigest()


def decode_key(content: bytes) -> bytes:
    """Return the key in the content of its file; empty if it is damaged."""
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def read_key(path: Path) -> bytes:
    """Return the key of a list.

    Raises:
        StorageError: It is missing or damaged.
    """
    with translated(path, "read"):
        try:
            key = decode_key(read_file(path))
        except FileNotFoundError:
            key = b""
    if not key:
        raise StorageError(
            f"{path.name}, the key of the list of what was purged, is missing or damaged.",
            code="purge_key",
            recovery=hint_purges(path.parent),
            path=path,
        )
    return key
