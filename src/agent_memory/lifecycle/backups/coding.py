"""What becomes of the lines and long texts of a backup that is brought back, where it or the agent is encrypted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_memory.encryption import KeyFile, key_for, state_of
from agent_memory.encryption.keys import key_in
from agent_memory.errors import StorageError
from agent_memory.files.names import ENCRYPTION
from agent_memory.journal import IDENTITY
from agent_memory.journal.codec import decoded_entry, encoded_entry
from agent_memory.journal.format import ENCRYPTED_FORMAT, MalformedLineError, decode_entry, encode_entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.encryption import DataKey
    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Codec
    from agent_memory.journal.format import Header
    from agent_memory.lifecycle.backups.reading import Archive


@dataclass(frozen=True, slots=True)
class Coding:
    """How a backup stands, and how the agent's files do that it is brought back to.

    Attributes:
        key_file: Of the backup, as its bytes; None where that is plain.
        was: Its key; None where it is plain.
        now: That of the agent's files; that of the backup where these are plain.
    """

    key_file: bytes | None = None
    was: DataKey | None = None
    now: DataKey | None = None

    def header(self, header: Header) -> Header:
        """Return the header of a journal as it is to stand."""
        if self.now is None:
            return header
        return replace(header, key=self.now.key, format=ENCRYPTED_FORMAT, min_reader=ENCRYPTED_FORMAT)

    def line(self, line: bytes, judge: Callable[[bytes], bytes], *, is_encrypted: bool) -> bytes:
        """Return a line behind the header as it is to stand; nothing of one that cannot be read without the key.

        Args:
            line: As the backup has it.
            judge: Returns a plain line as it comes back, another one, or nothing.
            is_encrypted: Whether the header of its journal says so.
        """
        if self.now is None:
            return judge(line)
        was = self.was if is_encrypted else None
        try:
            entry = decoded_entry(was or IDENTITY, decode_entry(line))
        except MalformedLineError:
            return line if was is not None else b""  # a damaged line: plain, it must not come among encrypted ones
        plain = line if was is None else encode_entry(entry.seq, entry.at, entry.changes)
        judged = judge(plain)
        if judged == plain and was is not None:
            return line
        return b"".join(_encoded(each, self.now) for each in judged.splitlines(keepends=True))


def coding_of(archive: Archive, folder: AgentFolder) -> Coding:
    """Return how a backup and an agent's files stand.

    Raises:
        StorageError: There is no key for one of them (`encrypted`, `wrong_key`); or they are encrypted with two
            (`other_key`).
        ConfigurationError: A package is missing.
    """
    held = next((each for each in archive.manifest.files if each.name == ENCRYPTION), None)
    if held is None:
        return Coding(None, None, key_for(folder.path))
    now = key_for(folder.path) if state_of(folder.path) is not None else None  # an agent that is new takes that key
    content = b"".join(archive.blocks(held))
    file = KeyFile.of(content, archive.path)
    if now is not None and file.key != now.key:
        raise StorageError(
            f"{archive.path.name} is encrypted with another key than the memory of {folder.agent_id}. "
            "Nothing was changed.",
            code="other_key",
            recovery="Bring it back as a new agent: `agent-memory backup restore FILE --as NAME`.",
        )
    was = now or key_in(file, folder.path)
    return Coding(content, was, was)


def _encoded(line: bytes, codec: Codec) -> bytes:
    entry = decode_entry(line)
    return encoded_entry(codec, entry.seq, entry.at, entry.changes)
