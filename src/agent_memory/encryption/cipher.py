"""`DataKey`: AES-256-GCM for record fields and whole files.

Nonces are 96 random bits (NIST SP 800-38D, 8.2.2): one key is good for 2**32 texts, which is 4,000 million changes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
MAGIC: Final = b"agent-memory encrypted 1\n"
"""First bytes of an encrypted file."""


def build_cipher(secret: bytes) -> Any:
    """Return the cipher with a key of 32 bytes.

    Raises:
        ConfigurationError: `cryptography_missing`: the package is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ConfigurationError(
            "This memory needs encryption, and the package cryptography is not installed. Nothing was read or changed.",
            code="cryptography_missing",
            recovery=advice("encryption"),
        ) from None
    return AESGCM(secret)


def encrypt_bound(cipher: Any, content: bytes, bound_to: bytes) -> bytes:
    """Return nonce and ciphertext; decryption needs the same `bound_to`."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + bytes(cipher.encrypt(nonce, content, bound_to))


def decrypt_bound(cipher: Any, content: bytes, bound_to: bytes) -> bytes:
    """Return the content of `encrypt_bound`.

    Raises:
        ValueError: It was changed, or is of another key or bound to something else.
    """
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], bound_to))
    except (InvalidTag, ValueError, OverflowError):  # of the latter two: it is shorter than a nonce
        raise ValueError("it cannot be decrypted") from None


def bound(*parts: object) -> bytes:
    """Return parts as unambiguous bytes."""
    return json.dumps(parts, ensure_ascii=True).encode()


class DataKey:
    """Key of all files of one agent; a `Codec` of its journals.

    Args:
        secret: Key of 32 random bytes.
        agent: Name of the agent when its memory was encrypted; a folder may be renamed later.

    Attributes:
        key: Public name of the key.

    Raises:
        ConfigurationError: The package cryptography is not installed.
    """

    def __init__(self, secret: bytes, agent: str) -> None:
        self._cipher = build_cipher(secret)
        self._secret = secret
        self._agent = agent
        self._hashes = _derive(secret, "hashes")
        self.key: str = _derive(secret, "name").hex()[:16]

    def encode(self, where: Sequence[object], fields: bytes) -> str:
        """Return the text for fields of a record; see `Codec`."""
        return base64.b64encode(self.encrypt(where, fields)).decode()

    def decode(self, where: Sequence[object], text: str) -> bytes:
        """Return the fields of a text.

        Raises:
            ValueError: It was changed, or made for another place or with another key.
        """
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error:
            raise ValueError("it is not base64") from None
        return self.decrypt(where, content)

    def encrypt(self, where: Sequence[object], content: bytes) -> bytes:
        """Return content, encrypted and bound to a place."""
        return encrypt_bound(self._cipher, content, bound(self._agent, *where))

    def decrypt(self, where: Sequence[object], content: bytes) -> bytes:
        """Return the content of `encrypt`.

        Raises:
            ValueError: It was changed, or made for another place or with another key.
        """
        return decrypt_bound(self._cipher, content, bound(self._agent, *where))

    def encrypt_file(self, name: str, content: bytes) -> bytes:
        """Return the bytes of a whole file, bound to its name."""
        return MAGIC + self.encrypt(("file", name), content)

    def decrypt_file(self, name: str, content: bytes) -> bytes:
        """Return the content of an encrypted file.

        Raises:
            ValueError: It is not encrypted by us, was changed, or is another file.
        """
        if not content.startswith(MAGIC):
            raise ValueError("it is not encrypted")
        return self.decrypt(("file", name), content[len(MAGIC) :])

    def hash_content(self, content: bytes) -> bytes:
        """Return the HMAC-SHA256 of content under the key."""
        return hmac.digest(self._hashes, content, hashlib.sha256)

    @property
    def secret(self) -> bytes:
        """Key bytes, to wrap them."""
        return self._secret


def _derive(secret: bytes, purpose: str) -> bytes:
    return hmac.digest(secret, f"agent-memory {purpose}".encode(), hashlib.sha256)
