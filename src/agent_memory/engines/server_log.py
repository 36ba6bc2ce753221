"""Order of changes of one agent on a server.

A Qdrant server has no transactions. What it has is a conditional write of one point, so that is what the order hangs
on. Each agent has one point more, its *head*: number (`seq`) and author (`nonce`) of the last change, and the change
itself (`items`).

- A change is decided upon change n and written as head n + 1 on the condition that the head still is n. The loser of a
  race reads and decides again. The write of the head is the commit: all of a change happens, or nothing.
- Its items are then carried out upon the memories' points, each on the condition that nothing later wrote them. A
  client that died in between left them in the head: the next writer carries them out first, and readers lay them over
  what they read. They hold values and no differences, so that doing it twice, or late, changes nothing.
- Each point carries the `seq` that wrote it, so that a client fetches what it missed and no more.

Owns this protocol and the payloads. Knows neither memories nor search.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.embeddings import text_hash
from agent_memory.engines.server_client import Payload, ServerRequests, UnreachableError
from agent_memory.errors import BusyError, ReadOnlyError, StorageError, UnsupportedError, unknown_outcome
from agent_memory.journal import GRACE, Change, Entry, JournalUpdate
from agent_memory.journal.format import apply_change
from agent_memory.logs import get_logger
from agent_memory.models import ACCESS, Clock, content_hash, to_text
from agent_memory.store.state import FORGOTTEN, RELEASED, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from agent_memory.models import Kind
    from agent_memory.store.protocols import Absorb, Decide

log = get_logger(__name__)
FORMAT: Final = 1
_ADDED: Final = frozenset({"id", "seq", "agent_id", "kind"})
_REMEMBERED_AUTHORS: Final = 64
"""Changes a head names with their authors, so that a client whose answer was lost can tell whether it won."""
T = TypeVar("T")
_ROUNDS: Final = 60


class LostRaceError(Exception):
    """Another client changed something first: read and decide again."""


class ServerLog:
    """Memories of one agent as last read, and their changes.

    For one thread.

    Args:
        wire: Requests about this agent.
        text: Name of the field with a record's words.

    Attributes:
        rows: Payloads by memory ID; a deleted memory's has `record` None.
    """

    def __init__(self, wire: ServerRequests, text: str) -> None:
        self._wire = wire
        self._text = text
        self._head: Payload = {}
        self.rows: dict[str, Payload] = {}

    @property
    def seq(self) -> int:
        """Number of the last change this client knows."""
        return int(self._head.get("seq", 0))

    def sync(self) -> tuple[bool, list[str]]:
        """Fetch what changed since the last call.

        Returns:
            Whether everything known before is void, and the ids that changed, in the order of storing.

        Raises:
            StorageError: The server does not answer, or what it has is of a newer version.
        """
        head = self._wire.head() or {}
        if head.get("seq", 0) == self.seq and head.get("nonce") == self._head.get("nonce"):
            self._head = head
            return False, []
        if head.get("applied") != head.get("seq"):
            head = self._wire.head(whole=True) or {}
        if head.get("min_reader", FORMAT) > FORMAT:
            raise ReadOnlyError("The memories on the server were written by a newer version of this package.")
        reset = self._is_another_past(head)
        known_rows = {} if reset else self.rows
        # In this order: what the head holds was read first, so the rest was carried out before and is on its points.
        changed = {row["id"]: row for row in self._wire.changed_since(0 if reset else self.seq)}
        for item in head.pop("items", ()) if head.get("applied") != head.get("seq") else ():
            self._overlay(item, head["seq"], changed, known_rows)
        if reset:
            self.rows.clear()  # in place: other objects refer to it
        self._head = head
        self.rows.update(changed)
        return reset, sorted(changed, key=self._place)

    def commit(self, changes: Sequence[Change], moment: str) -> list[str]:
        """Apply changes to the state of the last `sync`, all or none.

        Args:
            changes: Changes in the form of a journal.
            moment: Time of the changes, ISO 8601.

        Returns:
            The ids that changed, in the order of storing.

        Raises:
            LostRaceError: Another client wrote first; nothing was written.
            StorageError: Nothing was written, unless the message says that this is not known.
        """
        seq = self.seq + 1
        self._finish_others()
        items = self._items(changes, seq, moment)
        # Refuses what another author put there. The condition on the write would skip it, but without a word.
        self._wire.rows([item["id"] for item in items if item["id"] not in self.rows], ["seq"])
        self._claim(seq, items, purged=int(self._head.get("purged", 0)))
        return self._carry_out(seq, items)

    def purge(self, before: str) -> int:
        """Delete the marks of memories deleted before a moment; return their number.

        Raises:
            LostRaceError, StorageError: As `commit`.
        """
        old = [i for i, row in self.rows.items() if row["record"] is None and row["gone_at"] < before]
        gone = [i for i in old if not self.rows[i].get(RELEASED)]
        traced = [i for i in old if self.rows[i].get(RELEASED) and self.rows[i]["forgotten"]]
        if not (gone or traced):
            return 0
        seq = self.seq + 1
        self._finish_others()
        items = [{"id": memory_id, "op": "purge", "row": {}} for memory_id in gone]
        # A trace stays, except the hash without a salt.
        items += [
            {
                "id": i,
                "op": "put",
                "row": {**{name: value for name, value in self.rows[i].items() if name not in _ADDED}, "forgotten": []},
            }
            for i in traced
        ]
        # A client that has not looked since the last of them must read everything again: it would not notice these.
        purged = [self.rows[memory_id]["seq"] for memory_id in gone] or [int(self._head.get("purged", 0))]
        self._claim(seq, items, purged=max(purged))
        self._carry_out(seq, items)
        return len(gone)

    # -- the protocol -------------------------------------------------------------------------------------------------

    def _is_another_past(self, head: Payload) -> bool:
        """Return True if the server's past differs from this client's.

        After a restored backup, a new collection or a purge.
        """
        if not self._head:
            return False
        authors = dict(map(tuple, head.get("authors", ())))
        return bool(
            head.get("life") != self._head["life"]
            or head["seq"] < self.seq
            or authors.get(self.seq, self._head["nonce"]) != self._head["nonce"]
            or self.seq < head["purged"]
        )

    def _finish_others(self) -> None:
        if not self._head or self._head["applied"] == self._head["seq"]:
            return
        head = self._wire.head(whole=True) or {}
        if head.get("nonce") != self._head["nonce"]:
            raise LostRaceError
        if head["applied"] != head["seq"]:
            self._wire.apply(head["seq"], head["items"])

    def _claim(self, seq: int, items: list[Payload], *, purged: int) -> None:
        nonce = secrets.token_hex(8)
        authors = [*self._head.get("authors", ()), [seq, nonce]][-_REMEMBERED_AUTHORS:]
        head = {
            "format": FORMAT,
            "min_reader": FORMAT,
            "life": self._head.get("life") or str(uuid.uuid4()),
            "seq": seq,
            "nonce": nonce,
            "authors": authors,
            "applied": seq - 1,
            "purged": purged,
        }
        before = (self.seq, self._head["nonce"]) if self._head else None
        try:
            self._wire.swap_head(before, {**head, "items": items})
        except UnreachableError as error:
            raise unknown_outcome(error.message) if error.maybe_sent else error from None
        try:
            seen = self._wire.head() or {}
        except StorageError as error:
            raise unknown_outcome(error.message) from None
        if [seq, nonce] in seen.get("authors", ()):
            self._head = head
            return
        oldest = min((number for number, _ in seen.get("authors", ())), default=0)
        if oldest > seq:
            raise unknown_outcome("Too many other changes happened at the same time, so the outcome is not known.")
        raise LostRaceError

    def _carry_out(self, seq: int, items: list[Payload]) -> list[str]:
        """Apply a committed change.

        If that fails, the next writer does, and readers see it in the head.
        """
        try:
            self._wire.apply(seq, items)
            self._head["applied"] = seq
        except StorageError as error:
            log.warning("change_left_to_the_next_writer", code=error.code, error=error.message)
        changed: dict[str, Payload] = {}
        for item in items:
            if item["op"] == "purge":
                self.rows.pop(item["id"], None)
            else:
                self._overlay(item, seq, changed, self.rows)
        self.rows.update(changed)
        return sorted(changed, key=self._place)

    # -- payloads -----------------------------------------------------------------------------------------------------

    def _items(self, changes: Sequence[Change], seq: int, moment: str) -> list[Payload]:
        """Return each memory's state after all changes, as instructions.

        They hold values and no differences.
        """
        before = {change.id: self.rows.get(change.id) for change in changes}
        records = {i: whole_record(row) for i, row in before.items() if row is not None and row["record"] is not None}
        noted: dict[str, Payload] = {}
        for change in changes:
            apply_change(records, change, moment)
            if change.op == "mark":
                noted.setdefault(change.id, {}).update(change.data)
        items = []
        for place, (memory_id, row) in enumerate(before.items()):
            born = [row["seq_born"], row["place"]] if row is not None and row["record"] is not None else [seq, place]
            note = noted.get(memory_id, {})
            if memory_id in records:
                items.append(_build_row(self._text, memory_id, records[memory_id], row, born))
            elif (row is not None and row["record"] is not None) or note.get(RELEASED):
                items.append(_build_mark(self._text, memory_id, row, born, moment, note.get(RELEASED)))
        return items

    @staticmethod
    def _overlay(item: Payload, seq: int, changed: dict[str, Payload], known_rows: dict[str, Payload]) -> None:
        row = changed.get(item["id"]) or known_rows.get(item["id"]) or {"seq": 0}
        if row["seq"] > seq or item["op"] == "purge":
            return
        base = row if item["op"] == "set" else {}
        changed[item["id"]] = {**base, **item["row"], "id": item["id"], "seq": seq}

    def _place(self, memory_id: str) -> tuple[int, int]:
        row = self.rows[memory_id]
        return row["seq_born"], row["place"]


def whole_record(row: Payload) -> dict[str, Any]:
    """Return the journal's form of a memory that is not deleted."""
    access = {key: row[key] for key in ACCESS if row.get(key)}
    return {**row["record"], **access}


def _build_row(text: str, memory_id: str, record: dict[str, Any], row: Payload | None, born: list[int]) -> Payload:
    access = {"access_count": record.get("access_count", 0), "last_accessed": record.get("last_accessed")}
    rest = {key: value for key, value in record.items() if key not in ACCESS}
    current = row if row is not None and row["record"] is not None else None
    if current is not None and rest == current["record"]:
        return {"id": memory_id, "op": "set", "row": access}
    if current is not None and rest[text] == current["record"][text]:
        return {"id": memory_id, "op": "set", "row": {"record": rest, **access}}
    forgotten = list(row["forgotten"]) if row is not None else []
    is_item = rest.get("source", {}).get("kind") == "extraction"
    row_after = {
        "record": rest,
        **access,
        "seq_born": born[0],
        "place": born[1],
        "text": text_hash(rest[text]).hex(),  # what its vector is bound to
        "embedded": None,
        "has_vector": False,
        "gone": False,
        "forgotten": forgotten,
        **({"item": True} if is_item else {}),
    }
    return {"id": memory_id, "op": "put", "row": row_after}


def _build_mark(
    text: str, memory_id: str, row: Payload | None, born: list[int], moment: str, trace: Payload | None
) -> Payload:
    """Return the mark of a memory that was deleted, or released elsewhere.

    A deleted one has a hash of its text, so that capture does not store it again.
    """
    forgotten = [] if row is None else list(row["forgotten"])
    if row is not None and row["record"] is not None:
        forgotten.append(content_hash(row["record"][text]))
    mark = {
        "record": None,
        "forgotten": list(dict.fromkeys(forgotten)),
        "gone": True,
        "gone_at": moment,
        "has_vector": False,
        "seq_born": born[0],
        "place": born[1],
    }
    return {"id": memory_id, "op": "put", "row": {**mark, **({RELEASED: trace} if trace else {})}}


class ServerChangeLog:
    """The `ChangeLog` of one agent on a server. For one thread.

    Args:
        kind: Kind of the records.
        server: Log of the agent on the server.
        clock: Source of the present.
        longest_wait: Maximum seconds of waiting after a lost race.
    """

    rewrite_count: Final = 0

    def __init__(self, kind: Kind[Any], server: ServerLog, clock: Clock, longest_wait: float) -> None:
        self._kind = kind
        self._server = server
        self._clock = clock
        self._longest_wait = longest_wait
        self._has_marks = False

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return "server", self._server.seq

    def looks_like(self) -> object:
        """See `ChangeLog`."""
        return None

    def poll(self, *, thorough: bool = False) -> JournalUpdate:  # noqa: ARG002 - a server is believed
        """See `ChangeLog`."""
        reset, changed = self._server.sync()
        return self._update(changed, reset=reset)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, None]:
        """See `ChangeLog`; what a server has answered is safe.

        Raises:
            BusyError: Every race was lost; nothing was written.
        """

        def attempt() -> T:
            absorb(self.poll())
            changes, answer = decide()
            if changes:
                absorb(self._update(self._server.commit(changes, to_text(self._clock())), reset=False))
                self._has_marks = self._has_marks or changes[0].op == "delete"
            return answer

        return self._until_won(attempt), None

    def hold(self, wait: float) -> AbstractContextManager[None]:  # noqa: ARG002 - no client is kept out
        """See `ChangeLog`."""
        return contextlib.nullcontext()

    def pays_to_compact(self, state: State[Any]) -> bool:  # noqa: ARG002 - nothing piles up
        """Return True if records were deleted since the last compaction.

        No other client deletes their marks.
        """
        has_marks, self._has_marks = self._has_marks, False
        return has_marks

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """Delete the marks of records deleted longer ago than `grace`.

        30 days if omitted. Nothing else can be deleted.
        """

        def finish(absorb: Absorb) -> bool:
            def purge() -> None:
                absorb(self.poll())
                self._server.purge(to_text(self._clock() - (GRACE if grace is None else grace)))

            self._until_won(purge)
            return False

        yield finish

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:  # noqa: ARG002
        """See `ChangeLog`."""
        raise UnsupportedError(
            "This storage keeps neither earlier versions nor forgotten memories.",
            recovery="Files keep both; on a server, changes and deletions are final.",
        )

    def report(self) -> tuple[list[str], list[str]]:
        """See `ChangeLog`."""
        return [], []

    def note_current(self, count: int) -> None:
        """Do nothing: the server keeps one state."""

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`; no other program rewrites what a server has."""

    def _until_won(self, attempt: Callable[[], T]) -> T:
        wait = 0.005
        for _ in range(_ROUNDS):
            try:
                return attempt()
            except LostRaceError:
                time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311 - keeps clients from racing in step
                wait = min(2 * wait, self._longest_wait)
        raise BusyError("Other clients change this memory all the time; nothing was written.")

    def _update(self, changed: list[str], *, reset: bool) -> JournalUpdate:
        """Return changed rows in the form of a journal.

        Deleted texts are known by hash alone.
        """
        entries = []
        for record_id in changed:
            row, name = self._server.rows[record_id], self._kind.name
            record = None if row["record"] is None else whole_record(row)
            change = Change("delete", name, record_id) if record is None else Change("put", name, record_id, record)
            marks: dict[str, Any] = {FORGOTTEN: row["forgotten"]} if row["forgotten"] else {}
            if record is None and row.get(RELEASED):
                marks[RELEASED] = row[RELEASED]
            mark = (Change("mark", name, record_id, marks),) if marks else ()
            entries.append(Entry(row["seq"], "", (change, *mark), b""))
        return JournalUpdate(entries, reset)
