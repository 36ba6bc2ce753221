"""Process that holds a shard, and its client in the agent's process.

`python -m agent_memory.engines.shard_process FOLDER` reads requests from its standard input, answers on its standard
output, one at a time, and ends when its input does: it never outlives the process it works for. It writes nothing: a
shard is immutable.

Every call of the engine holds the interpreter lock, and a damaged file can take the process down with it. So it never
runs in the agent's process: `main` runs it in a child, `shard` alone knows the engine's names. A child that
died, hangs or answers nonsense costs a search nothing: `nearest` returns None, and the caller compares all vectors
itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
from array import array
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.lock import index_lock
from agent_memory.files.names import HOLDER_LOCK
from agent_memory.files.processes import child_environment, keep_to_itself, python_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.engines.shard import Shard
    from agent_memory.models import Document, Facet

PATIENCE: Final = 0.03
"""Seconds a search waits for the engine: ten times what it takes at 100,000, and still within the budget of 40 ms."""
_CLOSING_SECONDS: Final = 5.0
_LENGTH: Final = struct.Struct("<I")


class PayloadConditions(TypedDict, total=False):
    """Optional conditions on payloads; all of them must hold.

    Attributes:
        facets: Labels of facets, all present.
        any_facets: Labels of facets, at least one present unless the list is empty.
        no_facets: Labels of facets, none present.
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


class NearMemories(NamedTuple):
    """Memories near a query, best first, with the engine's cosines.

    Attributes:
        pairs: (memory id, cosine).
        complete: True if all hits above the floor are listed; False if the limit cut them off.
    """

    pairs: list[tuple[str, float]]
    complete: bool


class EngineClient:
    """A shard held by a child process.

    The process is started here and ends with `close` or with this process. Never waits longer than its caller asks. For
    one thread, of the process that started it.

    Args:
        folder: The shard's folder.

    Raises:
        StorageError: No process could be started.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [*python_module("agent_memory.engines.shard_process"), str(folder)],
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
        """Process ID of the child."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """True if a request would be answered at once."""
        return not self._gone and not self._waiting

    def read_content(self, timeout: float = 0) -> dict[str, int] | None:
        """Return the content of the shard once: points by record ID.

        None while it is being opened.

        Raises:
            StorageError: It cannot be opened; the code is `busy` when another process holds it.
        """
        reply = self.reply(timeout)
        if reply is None:
            return None
        head, body = reply
        return {**dict.fromkeys(body.decode().splitlines(), 1), **head["several"]}

    def send(self, head: dict[str, Any], body: bytes) -> bool:
        """Send a request for `reply`; return False if that is impossible.

        The child may be busy or dead.
        """
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
        """Return the answer to the last request, once, or None.

        Raises:
            StorageError: The engine failed, or the child ended.
        """
        if self._gone:
            raise _build_ended_error()
        if not self._waiting:
            return None
        try:
            if not self._answers.poll(timeout):
                return None
            head, body = unpack_message(self._answers.recv_bytes())
        except (OSError, EOFError, ValueError) as error:
            self._gone = True
            raise _build_ended_error() from error
        self._waiting, abandoned, self._abandoned = False, self._abandoned, False
        if abandoned:
            return None
        if "failed" in head:
            raise StorageError(str(head["failed"]), code=str(head["code"]))
        return head, body

    def nearest(
        self, vector: Sequence[float], limit: int, floor: float, where: PayloadConditions, patience: float = PATIENCE
    ) -> NearMemories | None:
        """Return the nearest memories, or None after `patience` seconds."""
        with contextlib.suppress(StorageError):
            if self._abandoned:
                self.reply()
            if not self.send({"limit": limit, "floor": floor, "where": where}, array("f", vector).tobytes()):
                return None
            reply = self.reply(patience)
            if reply is not None:
                head, body = reply
                return NearMemories(list(zip(head["ids"], array("f", body), strict=True)), head["points"] < limit)
            self._abandoned = True
        return None

    def close(self, timeout: float = _CLOSING_SECONDS) -> None:
        """Close the shard and end the child, killed after `timeout` seconds."""
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


def _build_ended_error() -> StorageError:
    return StorageError("The engine's process has ended.", code="engine_gone")


def pack_message(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Encode a message: a JSON head, then raw float32.

    No pickle, no text of memories.
    """
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTH.pack(len(encoded)) + encoded + body


def unpack_message(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Decode a message into head and body.

    Raises:
        ValueError: It is invalid.
    """
    if len(message) < _LENGTH.size:
        raise ValueError("a message without a head")
    (length,) = _LENGTH.unpack_from(message)
    head = json.loads(message[_LENGTH.size : _LENGTH.size + length])
    if not isinstance(head, dict):
        raise ValueError("a message whose head is not a mapping")  # noqa: TRY004 - it is data, not a caller's mistake
    return head, message[_LENGTH.size + length :]


def get_label(facet: Facet) -> str:
    """Return a facet as one word of a payload."""
    return "=".join(facet)


def build_payload(document: Document) -> dict[str, Any]:
    """Return the payload of a record in the engine, without text.

    Deleted text would stay readable in the engine's log and pages; IDs, facets and numbers reveal nothing.
    """
    return {
        "id": document.id,
        "facets": [get_label(facet) for facet in document.facets],
        "timestamp": document.moment.timestamp(),
    }


class ShardReader:
    """Searches one open shard.

    Args:
        shard: Open shard to search.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._owner = dict(shard.owners())  # point -> memory

    def greeting(self) -> tuple[dict[str, Any], bytes]:
        """Return the first message: memories, and their points if several.

        As plain lines: of 100,000 memories these are split in 5 ms, and JSON is parsed in 40, which stops a process.
        """
        points = Counter(self._owner.values())
        several = {memory: count for memory, count in points.items() if count > 1}
        return {"several": several}, "\n".join(points).encode()

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()

    def nearest(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the memories nearest to the vector in `body`.

        At most `limit` points above `floor` that meet `where`.

        Raises:
            StorageError: The engine failed.
        """
        points = self._shard.nearest(array("f", body), head["limit"], floor=head["floor"], where=head["where"])
        best: dict[str, float] = {}
        for point, cosine in points:  # best first: a memory counts by its best piece
            best.setdefault(self._owner[point], cosine)
        return {"ids": list(best), "points": len(points)}, array("f", best.values()).tobytes()


def main() -> None:
    """Hold the shard named on the command line until standard input ends."""
    keep_to_itself()  # the engine gives its files the rights it likes
    requests = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # whatever the engine prints must not get between our messages
    with contextlib.suppress(BrokenPipeError, EOFError):
        _serve_shard(Path(sys.argv[1]), requests, answers)


def _serve_shard(folder: Path, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    held = contextlib.ExitStack()
    try:
        held.enter_context(index_lock(folder.parent / HOLDER_LOCK, "hold"))
        from agent_memory.engines.shard import Shard  # loads the engine

        reader = ShardReader(Shard.open(folder))
    except BusyError:
        answers.send_bytes(_failure("Another process holds the index.", "busy"))
    except StorageError as error:
        answers.send_bytes(_failure(error.message))
    else:
        answers.send_bytes(pack_message(*reader.greeting()))
        try:
            _serve(reader, requests, answers)
        finally:
            with contextlib.suppress(StorageError):  # nothing was written that could be lost
                reader.close()


def _serve(reader: ShardReader, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    while True:
        head, body = unpack_message(requests.recv_bytes())
        try:
            answers.send_bytes(pack_message(*reader.nearest(head, body)))
        except StorageError as error:
            answers.send_bytes(_failure(error.message))


def _failure(message: str, code: str = "engine") -> bytes:
    return pack_message({"failed": message, "code": code})


if __name__ == "__main__":
    main()
