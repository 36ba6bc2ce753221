"""Which key the files of a folder are encrypted with, for whoever in this process opens one of them.

A process has the keys that it was given, as a disk is unlocked for all programs of a session: each door to a file asks
here by the folder, so that none can be forgotten. A person's key is asked for when the first file needs it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agent_memory.encryption.key_file import KeyFile
from agent_memory.encryption.person import person_key
from agent_memory.errors import StorageError
from agent_memory.files.atomic import make_private_folder, signature
from agent_memory.files.names import ENCRYPTION, may_be_journal
from agent_memory.settings import EncryptionSettings

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.encryption.cipher import DataKey
    from agent_memory.encryption.key_file import State


class _Keys:
    """What this process knows; all of it by the real path of an agent's folder, or of the folder of all agents."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sources: dict[Path, EncryptionSettings] = {}
        self.files: dict[Path, tuple[object, KeyFile | None]] = {}
        self.unlocked: dict[tuple[Path, str], DataKey] = {}


_KEYS: Final = _Keys()


def take_keys_from(root: Path, settings: EncryptionSettings) -> None:
    """Say where the person's key for all agents below a folder comes from; where nobody did, from the environment.

    Who says nothing of his own leaves it at what another one said.
    """
    with _KEYS.lock:
        known = _KEYS.sources.get(root)
        if known != settings and (known is None or settings != EncryptionSettings()):
            _KEYS.sources[root] = settings
            _KEYS.unlocked = {place: key for place, key in _KEYS.unlocked.items() if place[0].parent != root}


def forget_keys() -> None:
    """Forget all keys, and where they come from."""
    with _KEYS.lock:
        _KEYS.sources, _KEYS.files, _KEYS.unlocked = {}, {}, {}


def key_file_of(folder: Path) -> KeyFile | None:
    """Return what `encryption.json` of an agent's folder says, None where there is none; looks whether it has changed.

    Raises:
        StorageError: `key_file`: it is there and cannot be used.
    """
    looked = signature(folder / ENCRYPTION)
    with _KEYS.lock:
        known = _KEYS.files.get(folder)
        if known is not None and known[0] == looked:
            return known[1]
        found = None if looked is None else KeyFile.read(folder)
        _KEYS.files[folder] = (looked, found)
        return found


def state_of(folder: Path) -> State | None:
    """Return how far the encryption of an agent's files is; None where they are plain. See `key_file_of`."""
    found = key_file_of(folder)
    return None if found is None else found.state


def is_encrypted(folder: Path) -> bool:
    """Tell whether nothing may be written to an agent's folder that is not encrypted. See `key_file_of`."""
    state = state_of(folder)
    return state in {"encrypting", "encrypted"} or (state is None and _is_to_be(folder))


def data_key(folder: Path, name: str | None = None) -> DataKey:
    """Return the key that the files of an agent's folder are encrypted with.

    Args:
        folder: The agent's.
        name: Of the key that a file names; None takes that of the folder.

    Raises:
        StorageError: `encrypted`: there is no key; `wrong_key`: it is another one; `key_file`: it cannot be made out.
        ConfigurationError: cryptography is not installed.
    """
    with _KEYS.lock:
        if name is not None and (known := _KEYS.unlocked.get((folder, name))) is not None:
            return known
        file = key_file_of(folder)
        if file is None:
            raise key_file_gone(folder)
        found = _KEYS.unlocked.get((folder, file.key))
        if found is None:
            found = _KEYS.unlocked[folder, file.key] = file.unwrapped(person_key(source_for(folder)))
    if name is not None and found.key != name:
        raise StorageError(
            f"A file of {folder.name} is encrypted with another key than the one in {ENCRYPTION}. "
            "Nothing was read or changed.",
            code="wrong_key",
            recovery=f"Bring back the {ENCRYPTION} that belongs to it, from the same backup as the file.",
        )
    return found


def key_file_gone(folder: Path) -> StorageError:
    """Return the error for a folder that has encrypted files, and no `encryption.json`."""
    return StorageError(
        f"A file of {folder.name} is encrypted, and {ENCRYPTION}, which holds the key of the files, is gone. "
        "Nothing was read or changed.",
        code="encrypted",
        recovery=f"Bring {ENCRYPTION} back from a backup of this memory: each is a zip file that has it.",
        path=folder / ENCRYPTION,
    )


def unlock(folder: Path) -> None:
    """Get the key of an agent's folder where its files are encrypted, so that all that opens one finds it.

    Raises:
        StorageError, ConfigurationError: As `data_key`.
    """
    if state_of(folder) is not None:
        data_key(folder)
    elif _is_to_be(folder):
        person_key(source_for(folder)).check_strength()


def source_for(folder: Path) -> EncryptionSettings:
    """Return where the person's key for an agent's folder comes from."""
    with _KEYS.lock:
        return next((_KEYS.sources[each] for each in folder.parents if each in _KEYS.sources), EncryptionSettings())


def key_in(file: KeyFile, folder: Path) -> DataKey:
    """Return the key in a key file that lies elsewhere, such as in a backup.

    Args:
        file: It.
        folder: Of the agent that it is asked for.

    Raises:
        StorageError, ConfigurationError: As `data_key`.
    """
    with _KEYS.lock:
        known = next((key for (_, name), key in _KEYS.unlocked.items() if name == file.key), None)
        return known or file.unwrapped(person_key(source_for(folder)))


def key_for(folder: Path) -> DataKey | None:
    """Return the key for what is written to a folder now; None where it is to be plain. See `data_key`.

    With the first of what is written to a folder whose files are to be encrypted, the key is made.

    Raises:
        StorageError, ConfigurationError: As `data_key`; `weak_key`: the passphrase for new files is too short.
    """
    if not is_encrypted(folder):
        return None
    if key_file_of(folder) is None:
        _begin(folder)
    return data_key(folder)


def _is_to_be(folder: Path) -> bool:
    """Tell whether settings have new agents encrypted, and nothing was stored in a folder yet."""
    with _KEYS.lock:
        settings = _KEYS.sources.get(folder.parent)  # of no folder below: there backups are unpacked
        if settings is None or not settings.new_agents or folder.name.startswith("_"):
            return False
    held = folder.iterdir() if folder.is_dir() else ()
    return not any(may_be_journal(path.name) and path.stat().st_size for path in held)


def _begin(folder: Path) -> None:
    person = person_key(source_for(folder))
    person.check_strength()
    make_private_folder(folder)
    file, data = KeyFile.fresh(folder.name, person, "encrypted")
    file.begin(folder)
    adopt(folder, data)


def adopt(folder: Path, key: DataKey) -> None:
    """Take a key as known, which was made or unwrapped already."""
    with _KEYS.lock:
        _KEYS.unlocked[folder, key.key] = key
