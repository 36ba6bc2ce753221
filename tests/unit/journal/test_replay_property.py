"""Whatever happens to a journal, in whatever order and by whomever, replaying it gives what a plain dict gives."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent_memory.journal import AS_IT_STANDS, IDENTITY, Change, Journal, JournalUpdate, Records, apply_change
from agent_memory.journal.format import add_checksum, encode_line
from agent_memory.models import to_text
from tests.support import FrozenClock, Scrambling, lines_of, scale_examples

if TYPE_CHECKING:
    from agent_memory.journal import Codec

KINDS = ("memory", "topic")
ids = st.sampled_from(["a", "b"])
kinds = st.sampled_from(KINDS)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
data = st.dictionaries(st.sampled_from(["x", "y", "access_count_of", "é"]), scalars | st.lists(scalars, max_size=2))
plain_changes = st.one_of(
    st.builds(Change, st.sampled_from(["put", "patch", "mark"]), kinds, ids, data),
    st.builds(Change, st.just("delete"), kinds, ids),
    st.builds(Change, st.just("touch"), kinds, ids, st.just({}) | st.fixed_dictionaries({"count": st.integers(0, 5)})),
)
foreign_lines = st.sampled_from(
    [
        {"op": "archive", "kind": "memory", "id": "a", "data": {"why": "a later version"}},
        {"op": "put", "kind": "sealed", "id": "s", "data": {"box": "…"}},
        {"op": "put", "kind": "memory", "id": "b", "data": {"x": 7}, "signature": "unknown field"},
        {"op": "batch", "entries": [{"op": "merge", "kind": "topic", "id": "t"}], "transaction": 4},
    ]
)


class Dict:
    """What the journal's documentation promises, in the plainest way, for all kinds."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], dict[str, Any]] = {}

    def apply(self, op: str, kind: str, record_id: str, fields: dict[str, Any], at: str) -> None:
        key, fields = (kind, record_id), deepcopy(fields)
        if op == "put":
            self.records[key] = fields
        elif op == "delete":
            self.records.pop(key, None)
        elif op in {"patch", "touch"} and key in self.records:
            record = self.records[key]
            if op == "touch":
                fields = {"access_count": record.get("access_count", 0) + fields.get("count", 1), "last_accessed": at}
            for name, value in fields.items():
                record[name] = value
                if value is None:
                    del record[name]


class Follower:
    """A journal and what its owner has replayed of it."""

    def __init__(self, path: Path, clock: FrozenClock, codec: Codec) -> None:
        self.journal = Journal(path, {"memory"}, codec=codec, clock=clock)
        self.records: dict[str, Records] = {}

    def absorb(self, update: JournalUpdate) -> None:
        if update.reset:
            self.records = {}
        for entry in update.entries:
            for change in entry.changes:
                apply_change(self.records.setdefault(change.kind, {}), change, entry.at)

    def flat(self) -> dict[tuple[str, str], dict[str, Any]]:
        self.absorb(self.journal.poll())
        return {(kind, key): value for kind, records in self.records.items() for key, value in records.items()}


class Interleavings(RuleBasedStateMachine):
    """Two writers, one compacting now and then, a clock that moves both ways, lines of a later version in between."""

    codec: Codec = IDENTITY

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="journal-"))
        self.path = self.folder / "memories.yaml"
        self.clock = FrozenClock()
        self.model = Dict()
        self.foreign: list[bytes] = []
        self.highest = 0
        self.no_sync = mock.patch.object(os, "fsync")
        self.no_sync.start()
        self.followers = [Follower(self.path, self.clock, self.codec) for _ in range(2)]

    def teardown(self) -> None:
        if hasattr(self, "no_sync"):
            self.no_sync.stop()
            shutil.rmtree(self.folder)

    @rule(who=st.integers(0, 1), changes=st.lists(plain_changes, min_size=1, max_size=4))
    def write(self, who: int, changes: list[Change]) -> None:
        follower = self.followers[who]
        with follower.journal.locked() as writer:
            follower.absorb(writer.update)
            entry = writer.append(changes)
        follower.absorb(JournalUpdate([entry]))
        assert entry.seq > self.highest, "a seq was given twice"
        self.highest = entry.seq
        for change in changes:
            self.model.apply(change.op, change.kind, change.id, change.data, entry.at)

    @rule(who=st.integers(0, 1), record_id=ids, times=st.integers(1, 4))
    def touch_again_and_again(self, who: int, record_id: str, times: int) -> None:
        for _ in range(times):
            self.write(who, [Change("touch", "memory", record_id)])

    @rule(line=foreign_lines)
    def a_later_version_writes(self, line: dict[str, Any]) -> None:
        self.write(0, [Change("mark", "topic", "header")])  # the file has a header from here on
        self.highest += 1
        raw = add_checksum(encode_line({"seq": self.highest, "at": to_text(self.clock()), **line}))
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, raw)
        os.close(descriptor)
        self.foreign.append(raw)
        if line["op"] == "put":
            self.model.apply("put", line["kind"], line["id"], line["data"], "")

    @rule(who=st.integers(0, 1), grace=st.sampled_from([timedelta(0), timedelta(hours=1), timedelta(days=30)]))
    def compact(self, who: int, grace: timedelta) -> None:
        self.followers[who].absorb(self.followers[who].journal.compact(grace=grace))

    @rule(minutes=st.sampled_from([-90, 1, 30, 90, 60 * 24 * 40]))
    def time_passes(self, minutes: int) -> None:
        self.clock.advance(minutes=minutes)

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.followers[who] = Follower(self.path, self.clock, self.codec)

    @invariant()
    def everybody_sees_what_a_dict_has(self) -> None:
        if not hasattr(self, "followers"):
            return
        for follower in [*self.followers, Follower(self.path, self.clock, self.codec)]:
            assert follower.flat() == self.model.records
            assert follower.journal.reader.problems == []
            assert follower.journal.reader.rewritten == 0

    @invariant()
    def the_file_keeps_its_order_and_what_it_does_not_know(self) -> None:
        if not hasattr(self, "followers") or not self.path.exists():
            return
        lines = lines_of(self.path)
        seqs = [json.loads(line[4:])["seq"] for line in lines]
        assert seqs == sorted(set(seqs)), "seq must rise strictly"
        assert [line for line in lines if line in self.foreign] == self.foreign


class EncryptedInterleavings(Interleavings):
    """The same of a journal whose fields are encrypted, which is also compacted by who has no key."""

    codec = Scrambling()

    @rule(grace=st.sampled_from([timedelta(0), timedelta(hours=1), timedelta(days=30)]))
    def compact_without_a_key(self, grace: timedelta) -> None:
        self.write(0, [Change("mark", "topic", "header")])  # who has no key begins no journal
        Journal(self.path, {"memory"}, codec=AS_IT_STANDS, clock=self.clock).compact(grace=grace)

    @rule(line=foreign_lines.filter(lambda line: line["op"] != "put"))
    def a_later_version_writes(self, line: dict[str, Any]) -> None:
        super().a_later_version_writes(line)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = hypothesis.settings(max_examples=scale_examples(60), stateful_step_count=25)

TestEncryptedInterleavings = EncryptedInterleavings.TestCase
TestEncryptedInterleavings.settings = hypothesis.settings(max_examples=scale_examples(60), stateful_step_count=25)
