"""Codecs of record fields in journal lines; errors for newer formats.

A journal is given a codec; this module knows no cipher. Operation, kind, ID and number of a line stay readable, and so
do the fields of deletions and accesses. A compaction needs no more.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from agent_memory.encryption import data_key, get_encryption_state
from agent_memory.errors import ReadOnlyError, StorageError, UnsupportedError
from agent_memory.journal.format import (
    ENCRYPTED_FORMAT,
    FORMAT,
    Change,
    Entry,
    Header,
    MalformedLineError,
    encode_entry,
    encode_fields,
)
from agent_memory.settings.installation import build_upgrade_command, installed_version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ENCRYPTED: Final = "encrypted"
"""Field of `data` with the encrypted fields."""
IN_LINE: Final = re.compile(rb'^--- {"seq": [^\n]{1,500}"data": {"encrypted": "', re.MULTILINE)
"""Finds an encrypted line in a file without a readable header."""
ENCRYPTED_OPS: Final = frozenset({"put", "patch", "mark"})
"""Operations whose fields are encrypted."""


class FieldLocation(NamedTuple):
    """Location of encrypted fields; they decrypt nowhere else.

    Attributes:
        kind: Kind of the record.
        id: ID of the record.
        op: Operation of the change.
        seq: Number of the line.
    """

    kind: str
    id: str
    op: str
    seq: int


class Codec(Protocol):
    """Encodes the fields of a change as text, and decodes them."""

    @property
    def key(self) -> str | None:
        """Public name of the key for journal headers; None if plain."""

    def encode(self, where: FieldLocation, fields: bytes) -> str:
        """Return the text for fields, given as JSON in UTF-8."""

    def decode(self, where: FieldLocation, text: str) -> bytes:
        """Return the fields of a text.

        Raises:
            ValueError: It was changed, or made for another place or with another key.
        """


class PlainCodec:
    """Leaves fields as they are; see `IDENTITY` and `AS_IT_STANDS`."""

    key: str | None = None

    def encode(self, where: FieldLocation, fields: bytes) -> str:
        """Raise: without a key nothing is encoded."""
        raise TypeError(f"{where}: no key for {len(fields)} bytes")

    def decode(self, where: FieldLocation, text: str) -> bytes:
        """Raise: without a key nothing is decoded."""
        raise TypeError(f"{where}: no key for {len(text)} characters")


IDENTITY: Final = PlainCodec()
"""Codec of plain journals; refuses encrypted ones."""
AS_IT_STANDS: Final = PlainCodec()
"""Codec that reads any journal and leaves encrypted fields encrypted, for a compaction without the key."""


def is_encrypted(change: Change) -> bool:
    """Return True if a change's fields are encrypted."""
    return change.op in ENCRYPTED_OPS and len(change.data) == 1 and isinstance(change.data.get(ENCRYPTED), str)


def encode_changes(codec: Codec, seq: int, moment: str, changes: tuple[Change, ...], form: int = FORMAT) -> bytes:
    """Return the line for changes, like `encode_entry`, encoded by `codec`.

    Raises:
        ValidationError: They cannot be written as JSON and YAML.
    """
    if codec.key is not None:
        changes = tuple(_encode_change(codec, seq, change) for change in changes)
    return encode_entry(seq, moment, changes, form)


def decode_changes(codec: Codec, entry: Entry) -> Entry:
    """Return an entry with decoded fields; `raw` keeps the line.

    Raises:
        MalformedLineError: They cannot be decrypted, or are not encrypted although there is a key.
    """
    if codec.key is None:
        return entry
    return replace(entry, changes=tuple(_decode_change(codec, entry.seq, change) for change in entry.changes))


def find_codec(path: Path, key: str | None) -> Codec:
    """Return the codec for a journal's header, from the loaded keys.

    Raises:
        StorageError: As `check_key`; `key_file`: the file with the key cannot be used.
        ConfigurationError: A package that is needed for it is missing.
    """
    if key is not None:
        return data_key(path.parent, key)
    if get_encryption_state(path.parent) == "encrypted":
        raise _not_encrypted(path)
    return IDENTITY


def check_key(path: Path, codec: Codec, key: str | None) -> None:
    """Check that a codec fits a journal's header.

    Raises:
        StorageError: `encrypted`: encrypted, and no key was given; `wrong_key`: encrypted with another key;
            `not_encrypted`: plain, although there is a key.
    """
    if codec is AS_IT_STANDS or codec.key == key:
        return
    name = f"{path.name} of {path.parent.name}"
    if codec.key is None:
        raise StorageError(
            f"{name} is encrypted, and no key was given. Nothing was read or changed.",
            code="encrypted",
            recovery="Give the key that this memory was encrypted with, and start again.",
            path=path,
        )
    if key is None:
        raise _not_encrypted(path)
    raise StorageError(
        f"{name} is encrypted with another key than the one that was given. Nothing was read or changed.",
        code="wrong_key",
        recovery="Give the key that this memory was encrypted with.",
        path=path,
    )


def _not_encrypted(path: Path) -> StorageError:
    return StorageError(
        f"{path.name} of {path.parent.name} is not encrypted, although the memory is. Nothing was read or changed.",
        code="not_encrypted",
        recovery="Restore the encrypted file; this one replaced it.",
        path=path,
    )


def check_writable(path: Path, codec: Codec, key: str | None) -> None:
    """Check that plain fields are not appended to an encrypted journal.

    Raises:
        ReadOnlyError: The journal is encrypted, and no key was given.
    """
    if codec.key is None and key is not None:
        raise ReadOnlyError(
            f"{path.name} is encrypted, and no key was given, so nothing can be written to it.",
            code="encrypted",
            recovery="Give the key that this memory was encrypted with.",
            path=path,
        )


def _encode_change(codec: Codec, seq: int, change: Change) -> Change:
    if change.op not in ENCRYPTED_OPS:
        return change
    text = codec.encode(FieldLocation(change.kind, change.id, change.op, seq), encode_fields(change.data))
    return replace(change, data={ENCRYPTED: text})


def _decode_change(codec: Codec, seq: int, change: Change) -> Change:
    if change.op not in ENCRYPTED_OPS:
        return change
    if not is_encrypted(change):
        raise MalformedLineError("its fields are not encrypted, as those of this journal are")
    try:
        data = json.loads(codec.decode(FieldLocation(change.kind, change.id, change.op, seq), change.data[ENCRYPTED]))
    except (ValueError, RecursionError):
        raise MalformedLineError(
            "its fields cannot be decrypted: they were changed, or are of another journal"
        ) from None
    if not isinstance(data, dict):
        raise MalformedLineError("its decrypted fields are not a mapping")
    return replace(change, data=data)


def describe_newer(name: str, header: Header) -> str:
    """Return a clause with both formats.

    Args:
        name: File name of the journal.
        header: Header of a format that is too new.
    """
    newest, supported = max(header.format, header.min_reader), FORMAT if header.key is None else ENCRYPTED_FORMAT
    return (
        f"{name} was written by a newer version of agent-memory (format {newest}; "
        f"agent-memory {installed_version()} writes format {supported})"
    )


def build_newer_error(name: str, header: Header) -> ReadOnlyError:
    """Return the error for a write to a newer journal.

    Args:
        name: File name of the journal.
        header: Header of a format that is too new.
    """
    return ReadOnlyError(
        f"{describe_newer(name, header)}; it is only read here.", code="newer_format", recovery=advise_upgrade()
    )


def advise_upgrade() -> str:
    """Return the advice to upgrade, with the command."""
    return f"Upgrade, then try again: {build_upgrade_command()}"


def check_known(entries: Iterable[Entry]) -> None:
    """Check that this version understands all lines.

    Raises:
        UnsupportedError: A newer version wrote a line that this one does not understand.
    """
    for entry in entries:
        if entry.opaque:
            raise UnsupportedError(
                f"Line {entry.seq} was written by a newer version of agent-memory than {installed_version()}; this "
                "journal was not changed.",
                code="newer_format",
                recovery=advise_upgrade(),
            )
