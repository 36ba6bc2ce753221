"""The key that a person has: where it comes from, and what it is made of.

A key of 32 bytes, in hexadecimal or base64, is taken as it is. Anything else is a passphrase and is stretched.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent_memory.encryption.cipher import KEY_BYTES
from agent_memory.errors import ConfigurationError, StorageError
from agent_memory.installing import advice
from agent_memory.settings import EncryptionSettings

COST: Final = {"n": 2**15, "r": 8, "p": 3}
"""Of scrypt: 32 MB and some 0.3 s of one core, as recommended by the OWASP Password Storage Cheat Sheet (2024)."""
_MOST_COST: Final = 2**20
LEAST_CHARACTERS: Final = 12
"""Of a passphrase. The file with the wrapped key lets whoever has it try guesses, each as slow as scrypt makes it."""
VARIABLE: Final = EncryptionSettings.model_fields["key_variable"].default
_COMMAND_SECONDS: Final = 60
_LONGEST: Final = 4096
_URL_SAFE: Final = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class PersonKey:
    """A key as a person gave it.

    Attributes:
        text: As it came, without white space around it. Never shown.
        source: Where it came from, in words.
    """

    text: str = field(repr=False)
    source: str

    @property
    def raw(self) -> bytes | None:
        """The 32 bytes that it is; None for a passphrase."""
        if re.fullmatch(r"[0-9a-fA-F]{64}", self.text):
            return bytes.fromhex(self.text)
        if re.fullmatch(r"[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43}=?", self.text):
            return base64.b64decode(self.text.rstrip("=").translate(_URL_SAFE) + "=")
        return None

    def stretched(self, salt: bytes, n: int, r: int, p: int) -> bytes:
        """Return 32 bytes made of a passphrase by scrypt (RFC 7914), which takes 128 * r * n bytes of memory.

        Raises:
            ValueError: The parameters ask for nothing, or for more than a file may ask of us.
        """
        if not (1 < n <= _MOST_COST and 0 < r <= 32 and 0 < p <= 32):  # noqa: PLR2004 - what a file may ask of us
            raise ValueError("its parameters are out of bounds")
        memory = 128 * r * (n + p + 2)
        return hashlib.scrypt(self.text.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * memory, dklen=KEY_BYTES)

    def check_strength(self) -> None:
        """Make sure that it is worth encrypting with.

        Raises:
            ConfigurationError: `weak_key`: a passphrase that is too short.
        """
        if self.raw is None and len(self.text) < LEAST_CHARACTERS:
            raise ConfigurationError(
                f"The passphrase from {self.source} has {len(self.text)} characters; nothing was changed.",
                code="weak_key",
                recovery=f"Use {LEAST_CHARACTERS} or more (several words), or 32 random bytes in hexadecimal, as "
                "`openssl rand -hex 32` prints them.",
            )


def person_key(settings: EncryptionSettings) -> PersonKey:
    """Return the person's key from where the settings say.

    Raises:
        StorageError: `encrypted`: there is none, or it cannot be read.
        ConfigurationError: A package that is needed for it is missing.
    """
    asked: tuple[str | None, ...] = (settings.key_file, settings.key_command, settings.key_keyring)
    text = os.environ.get(settings.key_variable, "").strip()
    if not any(asked) and not text:  # what the command line has instead of a configuration
        asked = tuple(os.environ.get(f"{VARIABLE}_{each}") for each in ("FILE", "COMMAND", "KEYRING"))
    doors = (_from_file, _from_command, _from_keyring)
    for place, read in zip(asked, doors, strict=True):
        if place:
            return read(place)
    return _key(text, f"the environment variable {settings.key_variable}")


def no_key(why: str) -> StorageError:
    """Return the error for a memory that is encrypted while there is no key for it."""
    return StorageError(
        f"This memory is encrypted, and there is no key: {why}. Nothing was read or changed.",
        code="encrypted",
        recovery="Give the key that it was encrypted with: in the environment variable AGENT_MEMORY_KEY, or from where "
        "`encryption` in the configuration says (docs/encryption.md), and start again.",
    )


def _key(text: str, source: str) -> PersonKey:
    text = text.strip()
    if not text:
        raise no_key(f"{source} is empty or not set")
    return PersonKey(text, source)


def _from_file(name: str) -> PersonKey:
    path = Path(name).expanduser()
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - also a pipe, as `<(pass show …)` is one
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise no_key(f"the key file {path.name} cannot be read ({error.strerror or error})") from None
    return _key(_text(content, f"the key file {path.name}"), f"the key file {path.name}")


def _from_command(command: str) -> PersonKey:
    words = shlex.split(command)
    what = f"the command {words[0] if words else command!r}"
    try:
        done = subprocess.run(  # noqa: S603 - the owner's own configuration names it; there is no shell
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=_COMMAND_SECONDS, check=True
        )
    except subprocess.CalledProcessError as error:
        raise no_key(f"{what} ended with status {error.returncode}") from None
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired) as error:
        raise no_key(f"{what} failed ({type(error).__name__})") from None
    return _key(_text(done.stdout, what), what)


def _from_keyring(service: str) -> PersonKey:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise ConfigurationError(
            "The key of this memory is in the system's keyring, and the package keyring is not installed. "
            "Nothing was read or changed.",
            code="keyring_missing",
            recovery=f"Give the key in another way, or install the package. {advice('keyring')}",
        ) from None
    what = f"the entry {service!r} of the system's keyring"
    try:
        found = keyring.get_password(service, "agent-memory")
    except KeyringError as error:
        raise no_key(f"{what} cannot be read ({type(error).__name__})") from None
    return _key(found or "", what)


def _text(content: bytes, what: str) -> str:
    if len(content) > _LONGEST:
        raise no_key(f"{what} gives more than {_LONGEST} bytes, which is no key")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise no_key(f"{what} gives bytes that are no text; write 32 bytes in hexadecimal or base64") from None
