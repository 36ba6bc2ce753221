"""Keys of the folders whose files this process opens.

A process has the keys that it was given, as a disk is unlocked for all programs of a session: whatever opens a file
asks here by its folder. A person's key is loaded when the first file needs it.

`encryption.json` in an agent's folder has the key of its files, wrapped by the person's key. Changing the person's key
rewrites only this file. Without it the files are unreadable: backups have it.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.encryption.cipher import KEY_BYTES, DataKey, bound, build_cipher, decrypt_bound, encrypt_bound
from agent_memory.encryption.person import COST, PersonKey, person_key
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files import atomic
from agent_memory.files.concerns import Concern
from agent_memory.files.exchange import move_if_free
from agent_memory.files.names import ENCRYPTION, may_be_journal
from agent_memory.settings import EncryptionSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = 1
SALT_BYTES: Final = 16
State = Literal["encrypting", "encrypted", "decrypting"]
"""`encrypting`, `decrypting`: under way; some journals are encrypted and some are not, as the header of each says."""
_STATES: Final[tuple[State, ...]] = ("encrypting", "encrypted", "decrypting")


class _KnownKeys:
    """Known keys by the real path of a folder."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sources: dict[Path, EncryptionSettings] = {}
        self.files: dict[Path, tuple[object, KeyFile | None]] = {}
        self.unlocked: dict[tuple[Path, str], DataKey] = {}


_KEYS: Final = _KnownKeys()


def take_keys_from(root: Path, settings: EncryptionSettings) -> None:
    """Set the source of the person's key below a folder.

    Default settings do not replace earlier ones.
    """
    with _KEYS.lock:
        earlier = _KEYS.sources.get(root)
        if earlier != settings and (earlier is None or settings != EncryptionSettings()):
            _KEYS.sources[root] = settings
            _KEYS.unlocked = {place: key for place, key in _KEYS.unlocked.items() if place[0].parent != root}


def forget_keys() -> None:
    """Forget all keys and their sources."""
    with _KEYS.lock:
        _KEYS.sources, _KEYS.files, _KEYS.unlocked = {}, {}, {}


def get_key_file(folder: Path) -> KeyFile | None:
    """Return `encryption.json` of an agent's folder, or None.

    Read again after a change.

    Raises:
        StorageError: `key_file`: it exists and cannot be used.
    """
    looked = atomic.read_signature(folder / ENCRYPTION)
    with _KEYS.lock:
        cached = _KEYS.files.get(folder)
        if cached is not None and cached[0] == looked:
            return cached[1]
        file = None if looked is None else KeyFile.read(folder)
        _KEYS.files[folder] = (looked, file)
        return file


def get_encryption_state(folder: Path) -> State | None:
    """Return the encryption state of an agent's files; None if plain."""
    file = get_key_file(folder)
    return None if file is None else file.state


def is_encrypted(folder: Path) -> bool:
    """Return True if new files in a folder must be encrypted."""
    state = get_encryption_state(folder)
    return state in {"encrypting", "encrypted"} or (state is None and _should_encrypt(folder))


def data_key(folder: Path, name: str | None = None) -> DataKey:
    """Return the key of an agent's files.

    Args:
        folder: Folder of the agent.
        name: Name of the key in a file's header; the folder's key when None.

    Raises:
        StorageError: `encrypted`: the key is missing; `wrong_key`: it is another key; `key_file`: it is unusable.
        ConfigurationError: The package cryptography is not installed.
    """
    with _KEYS.lock:
        if name is not None and (unlocked := _KEYS.unlocked.get((folder, name))) is not None:
            return unlocked
        file = get_key_file(folder)
        if file is None:
            raise build_key_gone_error(folder)
        key = _KEYS.unlocked.get((folder, file.key))
        if key is None:
            key = _KEYS.unlocked[folder, file.key] = file.unwrap(person_key(get_key_source(folder)))
    if name is not None and key.key != name:
        raise StorageError(
            f"A file of {folder.name} is encrypted with another key than the one in {ENCRYPTION}. "
            "Nothing was read or changed.",
            code="wrong_key",
            recovery=f"Restore the {ENCRYPTION} of the same backup as the file.",
        )
    return key


def build_key_gone_error(folder: Path) -> StorageError:
    """Build the error for encrypted files without `encryption.json`."""
    return StorageError(
        f"A file of {folder.name} is encrypted, and {ENCRYPTION}, which has the key of the files, is missing. "
        "Nothing was read or changed.",
        code="encrypted",
        recovery=f"Restore {ENCRYPTION} from a backup of this memory: each backup is a zip file that has it.",
        path=folder / ENCRYPTION,
    )


def unlock(folder: Path) -> None:
    """Load the key of an agent's folder, if its files are encrypted.

    Raises:
        StorageError, ConfigurationError: As `data_key` raises.
    """
    if get_encryption_state(folder) is not None:
        data_key(folder)
    elif _should_encrypt(folder):
        person_key(get_key_source(folder)).check_strength()


def get_key_source(folder: Path) -> EncryptionSettings:
    """Return the source of the person's key for an agent's folder."""
    with _KEYS.lock:
        return next(
            (_KEYS.sources[parent] for parent in folder.parents if parent in _KEYS.sources), EncryptionSettings()
        )


def unwrap_key_file(file: KeyFile, folder: Path) -> DataKey:
    """Return the key in another key file, such as a backup's.

    Args:
        file: Content of the key file.
        folder: Folder of the agent that needs the key.

    Raises:
        StorageError, ConfigurationError: As `data_key` raises.
    """
    with _KEYS.lock:
        unlocked = next((key for (_, name), key in _KEYS.unlocked.items() if name == file.key), None)
        return unlocked or file.unwrap(person_key(get_key_source(folder)))


def key_for(folder: Path) -> DataKey | None:
    """Return the key for new files in a folder, or None.

    The first write to a folder that is to be encrypted makes the key.

    Raises:
        StorageError, ConfigurationError: As `data_key` raises; `weak_key`: the passphrase for new files is too short.
    """
    if not is_encrypted(folder):
        return None
    if get_key_file(folder) is None:
        _create_key_file(folder)
    return data_key(folder)


def _should_encrypt(folder: Path) -> bool:
    """Return True if settings encrypt new agents and this is one."""
    with _KEYS.lock:
        settings = _KEYS.sources.get(folder.parent)  # of no folder below: there backups are unpacked
        if settings is None or not settings.new_agents or folder.name.startswith("_"):
            return False
    held = folder.iterdir() if folder.is_dir() else ()
    return not any(may_be_journal(path.name) and path.stat().st_size for path in held)


def _create_key_file(folder: Path) -> None:
    person = person_key(get_key_source(folder))
    person.check_strength()
    atomic.make_private_folder(folder)
    file, data = KeyFile.fresh(folder.name, person, "encrypted")
    file.begin(folder)
    add_key(folder, data)


def add_key(folder: Path, key: DataKey) -> None:
    """Add a key that was made or unwrapped already."""
    with _KEYS.lock:
        _KEYS.unlocked[folder, key.key] = key


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Content of `encryption.json`.

    Attributes:
        state: Encryption state of the agent's files; bound to the wrapped key, so that it cannot be forged.
        agent: Name of the agent when the key was made; everything is bound to it.
        key: Public name of the data key, as in journal headers.
        wrapped: Data key, encrypted by the person's key.
        stretched: Parameters for a passphrase; None for a key of 32 bytes.
    """

    state: State
    agent: str
    key: str
    wrapped: bytes
    stretched: dict[str, Any] | None = None

    @classmethod
    def fresh(cls, agent: str, person: PersonKey, state: State = "encrypting") -> tuple[KeyFile, DataKey]:
        """Return a file with a new data key, and that key."""
        data = DataKey(os.urandom(KEY_BYTES), agent)
        return cls(state, agent, data.key, b"").wrapping(data, person), data

    def wrapping(self, data: DataKey, person: PersonKey, state: State | None = None) -> KeyFile:
        """Return the file with its data key wrapped by a person's key."""
        state = state or self.state
        stretched = None
        if person.raw is None:
            salt = base64.b64encode(os.urandom(SALT_BYTES)).decode()
            stretched = {"by": "scrypt", "salt": salt, **COST}
        new = replace(self, state=state, stretched=stretched)
        return replace(new, wrapped=encrypt_bound(build_cipher(new.wrapping_key(person)), data.secret, new.bound_to()))

    def unwrap(self, person: PersonKey) -> DataKey:
        """Return the data key.

        Raises:
            StorageError: `wrong_key`: it was wrapped by another person's key.
            ConfigurationError: The package cryptography is not installed.
        """
        try:
            data = DataKey(
                decrypt_bound(build_cipher(self.wrapping_key(person)), self.wrapped, self.bound_to()), self.agent
            )
        except ValueError:
            raise StorageError(
                f"The key from {person.source} is not the one that the memory of {self.agent} was encrypted with, or "
                f"{ENCRYPTION} was changed. Nothing was read or changed.",
                code="wrong_key",
                recovery="Give the key that it was encrypted with, or the last one of `agent-memory encryption rekey`.",
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
        """Write the file, synced, readable by its owner alone.

        Raises:
            StorageError: The earlier file is in place.
        """
        with atomic.translated(folder / ENCRYPTION, "write"):
            atomic.replace_file(folder / ENCRYPTION, self.encode(), durable=True)

    def begin(self, folder: Path) -> None:
        """Write the file, synced, unless another process was faster.

        Raises:
            StorageError: It could not be written.
        """
        new = folder / f".{ENCRYPTION}.{os.urandom(4).hex()}.tmp"
        with atomic.translated(folder / ENCRYPTION, "write"):
            atomic.replace_file(new, self.encode(), durable=True)
            if not move_if_free(new, folder / ENCRYPTION):
                new.unlink()
            atomic.sync_folder(folder)

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove the file of a folder without encrypted files.

        Raises:
            StorageError: It could not be removed.
        """
        with atomic.translated(folder / ENCRYPTION, "remove"):
            (folder / ENCRYPTION).unlink(missing_ok=True)
            atomic.sync_folder(folder)

    @classmethod
    def read(cls, folder: Path) -> KeyFile | None:
        """Return the key file of a folder, or None.

        Raises:
            StorageError: `key_file`: it exists and cannot be used.
        """
        path = folder / ENCRYPTION
        try:
            content = atomic.read_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _build_unusable_error(path, error.strerror or str(error)) from None
        return cls.of(content, path)

    @classmethod
    def of(cls, content: bytes, path: Path) -> KeyFile:
        """Parse the content of a key file; see `read`."""
        try:
            value = json.loads(content)
            if value["version"] != VERSION:
                raise _build_unusable_error(path, f"it is of version {value['version']}; a newer agent-memory reads it")
            state, stretched = value["state"], value["stretched"]
            names = [str(value["agent"]), str(value["key"])]
            wrapped = base64.b64decode(value["wrapped"], validate=True)
        except (ValueError, KeyError, TypeError) as error:
            raise _build_unusable_error(path, f"it is damaged ({type(error).__name__})") from None
        if state not in _STATES or not (stretched is None or isinstance(stretched, dict)):
            raise _build_unusable_error(path, "a field has a wrong value")
        return cls(state, names[0], names[1], wrapped, stretched)

    def wrapping_key(self, person: PersonKey) -> bytes:
        """Return the 32 bytes that wrap the data key.

        Raises:
            ValueError: The person's key does not fit the file.
        """
        if self.stretched is None:
            if person.raw is None:
                raise ValueError("a passphrase, where a key of 32 bytes was used")
            return person.raw
        try:
            salt, cost = base64.b64decode(self.stretched["salt"]), [int(self.stretched[name]) for name in COST]
        except (KeyError, TypeError):
            raise ValueError("damaged") from None
        return person.stretch(salt, *cost)

    def bound_to(self) -> bytes:
        """Return the bytes to which the wrapped key is bound."""
        return bound("agent-memory data key", VERSION, self.state, self.agent, self.key, self.stretched)


def _build_unusable_error(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path.name} of {path.parent.name} cannot be used: {why}. Without it nothing of this memory can be read; "
        "nothing was changed.",
        code="key_file",
        recovery=f"Restore {path.name} from a backup of this memory.",
        path=path,
    )


def check_encryption(folder: Path) -> Iterator[Concern]:
    """Report the encryption state, and whether the key is available."""
    try:
        file = get_key_file(folder)
        if file is None:
            return
        data_key(folder)
    except AgentMemoryError as error:
        yield Concern("encryption_key", error.message, error.recovery)
        file = None
    if file is not None and file.state == "encrypted":
        yield Concern("encryption", "The files are encrypted (AES-256-GCM), and the key is here.")
    elif file is not None:
        yield Concern(
            "encryption_unfinished",
            f"The files are being {'encrypted' if file.state == 'encrypting' else 'decrypted'}, or that was "
            "interrupted: some are encrypted, and some may be plain.",
            f"Run `agent-memory {'encrypt' if file.state == 'encrypting' else 'decrypt'}` again: it goes on.",
        )
