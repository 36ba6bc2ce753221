"""`EngineClient`: the agent's side of a shard that a child process holds. Never waits longer than its caller asks.

Speaks to `process`. For one thread, of the process that started it. A child that died, hangs or answers nonsense costs
a search nothing: `nearest` returns None, and the caller compares all vectors itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
from array import array
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from agent_memory.errors import StorageError
from agent_memory.files.processes import child_environment, python_module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent_memory.models import Document, Facet

PATIENCE: Final = 0.03
"""Seconds a search waits for the engine: ten times what it takes at 100,000, and still within the budget of 40 ms."""
_CLOSING_SECONDS: Final = 5.0
_LENGTH: Final = struct.Struct("<I")


class Conditions(TypedDict, total=False):
    """Conditions on payloads, all of which must hold; what is left out asks nothing.

    Attributes:
        facets: Labels of the facets it has, every one.
        any_facets: Labels of which it has at least one, unless there are none here.
        no_facets: Labels of which it has none.
        group: Labels of a group, and of any: it has the first or lacks the second.
        since: Said then or later, seconds since 1970.
        until: Said then or earlier.
    """

    facets: list[str]
    any_facets: list[str]
    no_facets: list[str]
    group: tuple[str, str]
    since: float
    until: float


class Candidates(NamedTuple):
    """Memories near a query, best first, with the engine's cosines.

    Attributes:
        pairs: (memory id, cosine).
        complete: Whether these are all above the floor; False when the limit cut them off.
    """

    pairs: list[tuple[str, float]]
    complete: bool


class EngineClient:
    """A shard held by a child process, which is started here and ends with `close` or with this process.

    Args:
        folder: The shard's folder.

    Raises:
        StorageError: No process could be started.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [*python_module("agent_memory.engines.shard_reader"), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                start_new_session=True,  # Ctrl-C in a terminal is meant for the agent
            )
        except OSError as error:
            raise StorageError(f"The engine's process could not be started: {error}.", code="engine") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._answers = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()
        self._waiting = True  # for the greeting
        self._abandoned = False  # no caller waits for the answer under way any more
        self._gone = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """Whether a request would be answered at once."""
        return not self._gone and not self._waiting

    def opened(self, timeout: float = 0) -> dict[str, int] | None:
        """Return what the shard holds, once: record id to number of points. None while it is being opened.

        Raises:
            StorageError: It cannot be opened; the code is `busy` when another process holds it.
        """
        reply = self.reply(timeout)
        if reply is None:
            return None
        head, body = reply
        return {**dict.fromkeys(body.decode().splitlines(), 1), **head["several"]}

    def send(self, head: dict[str, Any], body: bytes) -> bool:
        """Send a request, to be answered by `reply`; False when the child is busy or gone."""
        if not self.is_idle:
            return False
        try:
            self._requests.send_bytes(pack_message(head, body))
        except OSError:
            self._gone = True
            return False
        self._waiting = True
        return True

    def reply(self, timeout: float = 0) -> tuple[dict[str, Any], bytes] | None:
        """Return the answer to the last request, once; None while there is none.

        Raises:
            StorageError: The engine failed, or the child ended.
        """
        if self._gone:
            raise _ended()
        if not self._waiting:
            return None
        try:
            if not self._answers.poll(timeout):
                return None
            head, body = unpack_message(self._answers.recv_bytes())
        except (OSError, EOFError, ValueError) as error:
            self._gone = True
            raise _ended() from error
        self._waiting, abandoned, self._abandoned = False, self._abandoned, False
        if abandoned:
            return None
        if "failed" in head:
            raise StorageError(str(head["failed"]), code=str(head["code"]))
        return head, body

    def nearest(
        self, vector: Sequence[float], limit: int, floor: float, where: Conditions, patience: float = PATIENCE
    ) -> Candidates | None:
        """Return the nearest memories, or None when that cannot be had within `patience` seconds."""
        with contextlib.suppress(StorageError):
            if self._abandoned:
                self.reply()
            if not self.send({"limit": limit, "floor": floor, "where": where}, array("f", vector).tobytes()):
                return None
            reply = self.reply(patience)
            if reply is not None:
                head, body = reply
                return Candidates(list(zip(head["ids"], array("f", body), strict=True)), head["points"] < limit)
            self._abandoned = True
        return None

    def close(self, timeout: float = _CLOSING_SECONDS) -> None:
        """Let the child close the shard and end; killed after `timeout` seconds."""
        self._gone = True
        if self._requests.closed:
            return
        self._requests.close()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()

    def kill(self) -> None:
        """End the child at once; it writes nothing that could be lost."""
        self._process.kill()
        self.close()


def _ended() -> StorageError:
    return StorageError("The engine's process has ended.", code="engine_gone")


def pack_message(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return one message."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTH.pack(len(encoded)) + encoded + body


def unpack_message(message: bytes) -> tuple[dict[str, Any], bytes]:
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


def label_of(facet: Facet) -> str:
    """Return a facet as one word of a payload."""
    return "=".join(facet)


def payload_of(document: Document) -> dict[str, Any]:
    """Return what the engine keeps of a record with each of its vectors."""
    return {
        "id": document.id,
        "facets": [label_of(facet) for facet in document.facets],
        "timestamp": document.moment.timestamp(),
    }
