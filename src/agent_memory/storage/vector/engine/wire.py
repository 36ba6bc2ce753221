"""What client and host say to each other: a JSON head and raw vectors in a message. No pickle, no text of memories."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH: Final = struct.Struct("<I")


def pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return one message."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTH.pack(len(encoded)) + encoded + body


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Return head and body of a message.

    Raises:
        ValueError: It is no message of ours.
    """
    if len(message) < _LENGTH.size:
        raise ValueError("a message without a head")
    (length,) = _LENGTH.unpack_from(message)
    head = json.loads(message[_LENGTH.size : _LENGTH.size + length])
    if not isinstance(head, dict):
        raise ValueError("a message whose head is no mapping")  # noqa: TRY004 - it is data, not a caller's mistake
    return head, message[_LENGTH.size + length :]


def floats(values: Sequence[float]) -> bytes:
    """Return numbers as float32, little end first."""
    return struct.pack(f"<{len(values)}f", *values)


def numbers(body: bytes, width: int) -> list[tuple[float, ...]]:
    """Return the rows of a body of float32, `width` numbers each."""
    return list(struct.iter_unpack(f"<{width}f", body)) if body else []
