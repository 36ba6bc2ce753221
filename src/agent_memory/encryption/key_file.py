"""`KeyFile`: `encryption.json` in an agent's folder, which holds the key of its files, wrapped by the person's.

A change of the person's key rewrites this one small file. Who loses it has lost what the files say: a backup has it.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.encryption.cipher import KEY_BYTES, DataKey, aes_gcm, bound, lock_up, unlock
from agent_memory.encryption.person import COST
from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_file, replace_file, sync_folder, translated
from agent_memory.files.exchange import move_if_free
from agent_memory.files.names import ENCRYPTION

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.encryption.person import PersonKey

VERSION: Final = 1
SALT_BYTES: Final = 16
State = Literal["encrypting", "encrypted", "decrypting"]
"""`encrypting`, `decrypting`: under way; some journals are encrypted and some are not, as the header of each says."""
_STATES: Final[tuple[State, ...]] = ("encrypting", "encrypted", "decrypting")


@dataclass(frozen=True, slots=True)
class KeyFile:
    """What the file says.

    Attributes:
        state: How far the encryption of the agent's files is; bound to the wrapped key, so that nobody sets another.
        agent: The agent's name when the key was made; everything is bound to it.
        key: Names the data key, as the headers of journals do.
        wrapped: The data key, encrypted with the person's.
        stretched: How the person's key is made of a passphrase; None where it is 32 bytes itself.
    """

    state: State
    agent: str
    key: str
    wrapped: bytes
    stretched: dict[str, Any] | None = None

    @classmethod
    def fresh(cls, agent: str, person: PersonKey, state: State = "encrypting") -> tuple[KeyFile, DataKey]:
        """Return a file with a new data key, and that key; nothing is written."""
        data = DataKey(os.urandom(KEY_BYTES), agent)
        return cls(state, agent, data.key, b"").wrapping(data, person), data

    def wrapping(self, data: DataKey, person: PersonKey, state: State | None = None) -> KeyFile:
        """Return the file with the same data key, wrapped by a person's key, which may be another one."""
        state = state or self.state
        stretched = None
        if person.raw is None:
            salt = base64.b64encode(os.urandom(SALT_BYTES)).decode()
            stretched = {"by": "scrypt", "salt": salt, **COST}
        new = replace(self, state=state, stretched=stretched)
        return replace(new, wrapped=lock_up(aes_gcm(new.wrapping_key(person)), data.secret, new.bound_to()))

    def unwrapped(self, person: PersonKey) -> DataKey:
        """Return the data key.

        Raises:
            StorageError: `wrong_key`: the person's key is not the one that it was wrapped by.
            ConfigurationError: cryptography is not installed.
        """
        try:
            data = DataKey(unlock(aes_gcm(self.wrapping_key(person)), self.wrapped, self.bound_to()), self.agent)
        except ValueError:
            raise StorageError(
                f"The key from {person.source} is not the one that the memory of {self.agent} was encrypted with, or "
                f"{ENCRYPTION} was changed. Nothing was read or changed.",
                code="wrong_key",
                recovery="Give the key that it was encrypted with, or that `agent-memory rekey` was last given.",
            ) from None
        return data

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        value = {
            "version": VERSION,
            "state": self.state,
            "cipher": "AES-256-GCM",
            "agent": self.agent,
            "key": self.key,
            "wrapped": base64.b64encode(self.wrapped).decode(),
            "stretched": self.stretched,
        }
        return json.dumps(value, indent=1).encode() + b"\n"

    def write(self, folder: Path) -> None:
        """Put it in place, synced, readable by its owner alone.

        Raises:
            StorageError: The file that was there is in place.
        """
        with translated(folder / ENCRYPTION, "write"):
            replace_file(folder / ENCRYPTION, self.encode(), durable=True)

    def begin(self, folder: Path) -> None:
        """Put it in place, synced, unless another process was faster.

        Raises:
            StorageError: There is none.
        """
        new = folder / f".{ENCRYPTION}.{os.urandom(4).hex()}.tmp"
        with translated(folder / ENCRYPTION, "write"):
            replace_file(new, self.encode(), durable=True)
            if not move_if_free(new, folder / ENCRYPTION):
                new.unlink()
            sync_folder(folder)

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove the file of a folder, in which nothing is encrypted any more.

        Raises:
            StorageError: It is there still.
        """
        with translated(folder / ENCRYPTION, "remove"):
            (folder / ENCRYPTION).unlink(missing_ok=True)
            sync_folder(folder)

    @classmethod
    def read(cls, folder: Path) -> KeyFile | None:
        """Return what the file of a folder says, None where there is none.

        Raises:
            StorageError: `key_file`: it is there and cannot be used.
        """
        path = folder / ENCRYPTION
        try:
            content = read_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from None
        return cls.of(content, path)

    @classmethod
    def of(cls, content: bytes, path: Path) -> KeyFile:
        """Return what the bytes of such a file say; see `read`."""
        try:
            value = json.loads(content)
            if value["version"] != VERSION:
                raise _unusable(path, f"it is of version {value['version']}; a newer agent-memory reads it")
            state, stretched = value["state"], value["stretched"]
            names = [str(value["agent"]), str(value["key"])]
            wrapped = base64.b64decode(value["wrapped"], validate=True)
        except (ValueError, KeyError, TypeError) as error:
            raise _unusable(path, f"it is damaged ({type(error).__name__})") from None
        if state not in _STATES or not (stretched is None or isinstance(stretched, dict)):
            raise _unusable(path, "a field has a wrong value")
        return cls(state, names[0], names[1], wrapped, stretched)

    def wrapping_key(self, person: PersonKey) -> bytes:
        """Return the 32 bytes that wrap the data key.

        Raises:
            ValueError: They cannot be made of this key as the file says.
        """
        if self.stretched is None:
            if person.raw is None:
                raise ValueError("a passphrase, where a key of 32 bytes was used")
            return person.raw
        try:
            salt, cost = base64.b64decode(self.stretched["salt"]), [int(self.stretched[each]) for each in COST]
        except (KeyError, TypeError):
            raise ValueError("damaged") from None
        return person.stretched(salt, *cost)

    def bound_to(self) -> bytes:
        """Return all that must be as it was when the data key was wrapped."""
        return bound("agent-memory data key", VERSION, self.state, self.agent, self.key, self.stretched)


def _unusable(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path.name} of {path.parent.name} cannot be used: {why}. Without it nothing of this memory can be read; "
        "nothing was changed.",
        code="key_file",
        recovery=f"Bring {path.name} back from a backup of this memory.",
        path=path,
    )
