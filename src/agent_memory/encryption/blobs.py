"""`AgentBlobs`: the long texts of one agent, encrypted where its files are.

The name of such a file is a keyed hash of the text's name: whoever has a text cannot tell whether it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from agent_memory.encryption.keys import data_key, key_file_of, key_for
from agent_memory.files.atomic import read_file
from agent_memory.files.blobs import Blobs

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.encryption.cipher import DataKey
    from agent_memory.files.layout import AgentFolder


class AgentBlobs(Blobs):
    """The long texts of an agent. Raises what `data_key` does where they are encrypted and there is no key.

    Args:
        folder: The agent's.
    """

    def __init__(self, folder: AgentFolder) -> None:
        super().__init__(folder.blobs)
        self._agent = folder.path

    @override
    def place_of(self, name: str) -> str:
        key = key_for(self._agent)
        return name if key is None else _place(key, name)

    def recode(self) -> None:
        """Write each text anew that is not as the state of the agent's files has it, and remove the old file.

        Raises:
            StorageError: One cannot be read or written; it is as it was, and doing it again goes on.
        """
        key = data_key(self._agent)
        is_plain = key_for(self._agent) is None
        for place in sorted(self.names()):
            content = read_file(self.folder / place)
            try:
                text = key.decrypted(place, content)
            except ValueError:
                text = None
            if is_plain is (text is None):
                continue
            with self.bringing([content if text is None else text]):
                (self.folder / place).unlink()

    @override
    def _stored(self, place: str, content: bytes) -> bytes:
        key = key_for(self._agent)
        return content if key is None else key.encrypted(place, content)

    @override
    def _content(self, name: str) -> bytes | None:
        if key_file_of(self._agent) is None:
            return super()._content(name)
        key = data_key(self._agent)
        place = _place(key, name)
        try:
            content = read_file(self.folder / place)
        except FileNotFoundError:  # encryption is under way
            return super()._content(name)
        try:
            return key.decrypted(place, content)
        except ValueError:
            return None

    @override
    def _holds(self, path: Path, content: bytes) -> bool:
        key = key_for(self._agent)
        if key is None:
            return super()._holds(path, content)
        try:
            return key.decrypted(path.name, read_file(path)) == content
        except ValueError:
            return False


def _place(key: DataKey, name: str) -> str:
    return key.hashed(name.encode()).hex()
