"""The person's key: where it comes from, and how it is used.

A key of 32 bytes, in hexadecimal or base64, is taken as it is. Anything else is a passphrase and is stretched.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import selectors
import shlex
import subprocess
import time
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent_memory.encryption.cipher import KEY_BYTES
from agent_memory.errors import ConfigurationError, StorageError
from agent_memory.files.processes import add_key_variable, environment_without_keys
from agent_memory.settings import EncryptionSettings
from agent_memory.settings.installation import advice

COST: Final = {"n": 2**15, "r": 8, "p": 3}
"""Parameters of scrypt: 32 MB and some 0.3 s of one core (OWASP Password Storage Cheat Sheet, 2024)."""
_MOST_COST: Final = 2**20
LEAST_CHARACTERS: Final = 12
"""Characters of a passphrase. The key file allows guesses, each as slow as scrypt."""
VARIABLE: Final = EncryptionSettings.model_fields["key_variable"].default
_PLACES: Final = ("FILE", "COMMAND", "KEYRING")
_COMMAND_SECONDS: Final = 60
"""Seconds to wait for a key command; within as many seconds after that it fails at once."""
_LONGEST: Final = 4096
"""Bytes; longer output is not a key, and is not read."""
_BOM: Final = "\ufeff"
"""Byte order mark, which some editors write first."""
_HUNG: Final[dict[str, float]] = {}
"""Time of the last timeout by command, so that not each file waits again."""
_URL_SAFE: Final = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class PersonKey:
    """Key as a person gave it.

    Attributes:
        text: Text of the key without surrounding white space. Never shown.
        source: Source of the key in words.
    """

    text: str = field(repr=False)
    source: str

    @property
    def raw(self) -> bytes | None:
        """Key of 32 bytes; None for a passphrase."""
        if re.fullmatch(r"[0-9a-fA-F]{64}", self.text):
            return bytes.fromhex(self.text)
        if re.fullmatch(r"[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43}=?", self.text):
            return base64.b64decode(self.text.rstrip("=").translate(_URL_SAFE) + "=")
        return None

    def stretch(self, salt: bytes, n: int, r: int, p: int) -> bytes:
        """Return 32 bytes made of a passphrase by scrypt (RFC 7914).

        Takes 128 * r * n bytes of memory. Composed and decomposed letters are the same (RFC 8265).

        Raises:
            ValueError: The parameters are out of bounds.
        """
        if not (1 < n <= _MOST_COST and 0 < r <= 32 and 0 < p <= 32):  # noqa: PLR2004 - what a file may ask of us
            raise ValueError("its parameters are out of bounds")
        memory = 128 * r * (n + p + 2)
        return hashlib.scrypt(_encode_text(self.text), salt=salt, n=n, r=r, p=p, maxmem=2 * memory, dklen=KEY_BYTES)

    def check_strength(self) -> None:
        """Check that a passphrase is long enough.

        Raises:
            ConfigurationError: `weak_key`: it is too short.
        """
        if self.raw is None and len(self.text) < LEAST_CHARACTERS:
            raise ConfigurationError(
                f"The passphrase from {self.source} has {len(self.text)} characters; nothing was changed.",
                code="weak_key",
                recovery=f"Use {LEAST_CHARACTERS} or more (several words), or 32 random bytes in hexadecimal, as "
                "`openssl rand -hex 32` prints them.",
            )


def person_key(settings: EncryptionSettings) -> PersonKey:
    """Return the person's key from its source in the settings.

    Raises:
        StorageError: `encrypted`: the key is missing or unreadable.
        ConfigurationError: A package that is needed for it is missing.
    """
    add_key_variable(settings.key_variable)
    asked: tuple[str | None, ...] = (settings.key_file, settings.key_command, settings.key_keyring)
    text = os.environ.get(settings.key_variable, "").strip()
    if not any(asked) and not text:  # what the command line has instead of a configuration
        asked = tuple(os.environ.get(f"{VARIABLE}_{suffix}") for suffix in _PLACES)
    doors = (_read_file, _read_command, _read_keyring)
    for place, read in zip(asked, doors, strict=True):
        if place:
            return read(place)
    return _build_key(text, f"the environment variable {settings.key_variable}")


def build_no_key_error(why: str) -> StorageError:
    """Build the error for an encrypted memory without a key."""
    return StorageError(
        f"This memory needs a key for encryption, and there is none: {why}. Nothing was read or changed.",
        code="encrypted",
        recovery="Give the key that it is encrypted with: in the environment variable AGENT_MEMORY_KEY, or from where "
        "`encryption` in the configuration says (docs/how-to/encrypt.md), and start again.",
    )


def _build_key(text: str, source: str) -> PersonKey:
    text = text.strip().removeprefix(_BOM).strip()
    if not text:
        raise build_no_key_error(f"{source} is empty or not set")
    try:
        _encode_text(text)
    except UnicodeEncodeError:  # Python decodes invalid UTF-8 of the environment like this
        raise build_no_key_error(
            f"{source} holds bytes that are no text; write 32 bytes in hexadecimal or base64"
        ) from None
    return PersonKey(text, source)


def _read_file(name: str) -> PersonKey:
    path = Path(name).expanduser()
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - also a pipe, as `<(pass show …)` is one
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise build_no_key_error(f"the key file {path.name} cannot be read ({error.strerror or error})") from None
    return _build_key(_decode_text(content, f"the key file {path.name}"), f"the key file {path.name}")


def _read_command(command: str) -> PersonKey:
    try:
        words = shlex.split(command)
        what = f"the command {words[0]}"
    except (IndexError, ValueError):  # empty, or a quotation mark is not closed
        raise build_no_key_error(
            "the key command cannot be read: it is empty, or a quotation mark is not closed"
        ) from None
    hung = f"{what} did not end within {_COMMAND_SECONDS} s"
    if time.monotonic() - _HUNG.get(command, -_COMMAND_SECONDS) < _COMMAND_SECONDS:
        raise build_no_key_error(hung)
    try:
        status, printed = _run(words)
    except TimeoutError:
        _HUNG[command] = time.monotonic()
        raise build_no_key_error(hung) from None
    except (OSError, ValueError) as error:
        raise build_no_key_error(f"{what} failed ({type(error).__name__})") from None
    if status and len(printed) <= _LONGEST:  # of a longer text it was ended here
        raise build_no_key_error(f"{what} ended with status {status}")
    return _build_key(_decode_text(printed, what), what)


def _run(words: list[str]) -> tuple[int, bytes]:
    """Run a command; return its status and output, cut off.

    Raises:
        TimeoutError: It did not end in time, and was killed.
        OSError, ValueError: It cannot be started.
    """
    printed, until = b"", time.monotonic() + _COMMAND_SECONDS
    process = subprocess.Popen(  # noqa: S603 - the owner's own configuration names it; no shell runs
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, env=environment_without_keys()
    )
    with process, selectors.DefaultSelector() as selector:
        try:
            pipe = process.stdout
            if pipe is None:  # it was asked for
                raise OSError("not a pipe")
            selector.register(pipe, selectors.EVENT_READ)
            while len(printed) <= _LONGEST:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise TimeoutError
                block = os.read(pipe.fileno(), _LONGEST + 1 - len(printed))
                if not block:
                    return process.wait(max(0.0, until - time.monotonic())), printed
                printed += block
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            process.kill()  # nothing where it has ended
    return process.returncode, printed


def _read_keyring(service: str) -> PersonKey:
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
        password = keyring.get_password(service, "agent-memory")
    except KeyringError as error:
        raise build_no_key_error(f"{what} cannot be read ({type(error).__name__})") from None
    return _build_key(password or "", what)


def _encode_text(text: str) -> bytes:
    return unicodedata.normalize("NFC", text).encode()


def _decode_text(content: bytes, what: str) -> str:
    if len(content) > _LONGEST:
        raise build_no_key_error(f"{what} gives more than {_LONGEST} bytes, which is no key")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise build_no_key_error(
            f"{what} gives bytes that are no text; write 32 bytes in hexadecimal or base64"
        ) from None
