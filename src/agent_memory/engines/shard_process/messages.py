"""Messages between an `EngineClient` and its child: a JSON head, then raw float32. No pickle, no text of memories."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

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
