"""Damage at random: the doctor never fails, never writes unasked, and a repair loses no memory that could be read.

`DOCTOR_FUZZ=2000` tries more, from `DOCTOR_FUZZ_FROM=1000` on; each case is a seed, named in the failure.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks.codes import CODES
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.journal_survey import JournalReading
from agent_memory.care.checks.repairs import REMEDIES, repair_all
from agent_memory.journal import Journal
from agent_memory.journal.format import Header, add_checksum
from tests.support import NOON, resealed
from tests.unit.care.checks.homes import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Record

CASES = range(int(os.environ.get("DOCTOR_FUZZ_FROM", "0")), int(os.environ.get("DOCTOR_FUZZ", "40")))
NAMES = (
    "memories.yaml", "memories.yaml", "memories.yaml", ".lock", "scratchpad.yaml", "metadata.json",
    "embeddings.sqlite3", "events.jsonl", "memories.rejected.yaml", "memories.db", "memories (conflicted copy).yaml",
    ".memories.yaml.0123abcd.tmp", "embeddings.sqlite3-wal", "events.1.jsonl", "memories.lost-0123abcd.yaml",
    "memories.yaml.bak", "memories.db/.new-12ab",
)  # fmt: skip

AT = '"at": "2026-03-01T12:00:00Z", '
JUNK = (
    b"\xff\xfe\n",
    b"\n",
    b"--- []\n",
    b"--- {}\n",
    b"[" * 3000 + b"\n",
    b"x" * 300_000 + b"\n",
    b"- content: a\n",
    f'--- {{"seq": 9, {AT}"op": "put", "kind": "memory", "id": "mem-0", "data": {{}}}}\n'.encode(),
    f'--- {{"seq": 9, {AT}"op": "patch", "kind": "memory", "id": "mem-000000000001", "data": {{"tags":7}}}}\n'.encode(),
    f'--- {{"seq": 9, {AT}"op": "put", "kind": "memory", "id": "mem-00000000000a", "data": {{"x": NaN}}}}\n'.encode(),
    f'--- {{"seq": 98, {AT}"op": "put", "kind": "row", "id": "r", "data": {{"x": "\\ud800", "y": NaN}}}}\n'.encode(),
    b'--- {"seq": 1e999, "at": "0001-01-01T00:00:00+23:59", "op": "touch", "kind": "memory", "id": "x"}\n',
    b'--- {"seq": 77, "at": "9999-12-31T23:59:59-23:59", "op": "touch", "kind": "memory", "id": "x"}\n',
    b'--- {"journal": "agent-memory", "format": 9, "min_reader": 9, "generation": "x", "last_seq": 3}\n',
)


def _cut(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: dice.randrange(len(content) + 1)])


def _flip(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(dice.choice([1, 3, 50])):
        if content:
            content[dice.randrange(len(content))] = dice.randrange(256)
    path.write_bytes(content)


def _zero(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    begin = dice.randrange(len(content) + 1)
    end = min(len(content), begin + dice.choice([10, 300, 5000]))
    content[begin:end] = bytes(end - begin)
    path.write_bytes(content)


def _shuffle(path: Path, dice: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    dice.shuffle(lines)
    path.write_bytes(b"".join(lines + lines[: dice.randrange(3)]))


def _insert(path: Path, dice: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    junk = dice.choice([dice.choice(JUNK), add_checksum(dice.choice(JUNK))])
    lines.insert(dice.randrange(len(lines) + 1), junk)
    path.write_bytes(b"".join(lines))


def _newer(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    newer = content.replace(b'"min_reader": 2', b'"min_reader": 7').replace(b'"schema": 1', b'"schema": 7')
    path.write_bytes(resealed(newer) if b"agent-memory" in content else newer)


def _empty(path: Path, dice: random.Random) -> None:
    path.write_bytes(b"")


def _gone(path: Path, dice: random.Random) -> None:
    _remove(path)


def _folder(path: Path, dice: random.Random) -> None:
    _remove(path)
    (path / "inside").mkdir(parents=True)


def _loop(path: Path, dice: random.Random) -> None:
    _remove(path)
    path.symlink_to(dice.choice([path.name, "nowhere", "/dev/null", "memories.yaml", ".."]))


def _pipe(path: Path, dice: random.Random) -> None:
    _remove(path)
    os.mkfifo(path)


def _noise(path: Path, dice: random.Random) -> None:
    _remove(path)
    path.write_bytes(dice.randbytes(dice.choice([1, 100, 9000])))


def _old(path: Path, dice: random.Random) -> None:
    os.utime(path, (1, 1), follow_symlinks=False)
    path.chmod(dice.choice([0o600, 0o644, 0o666, 0o400]))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


WITH_CONTENT = (_cut, _flip, _zero, _shuffle, _insert, _newer, _empty, _old)
WITHOUT = (_gone, _folder, _loop, _pipe, _noise)


def _damage(root: Path, dice: random.Random) -> list[str]:
    done = []
    bob = root / "bob"
    for _ in range(dice.choice([1, 1, 2, 4, 7])):
        names = [*NAMES, *(str(path.relative_to(bob)) for path in sorted((bob / "memories.db").glob("*/*")))]
        path = bob / dice.choice(names)
        if dice.random() < 0.05:
            path = next((root / "_sessions").iterdir(), path)
        if not path.parent.is_dir():
            continue
        if "conflicted" in path.name and (bob / "memories.yaml").is_file():
            _remove(path)
            shutil.copyfile(bob / "memories.yaml", path)
        readable = path.is_file() and not path.is_symlink()
        ways = WITH_CONTENT * 2 + WITHOUT if readable else WITHOUT
        way = dice.choice(ways)
        way(path, dice)
        done.append(f"{way.__name__} {path.name}")
    return done


def _memories(journal: Path) -> dict[str, Record]:
    memories = JournalReading(journal, "bob").load()
    # A record that lost its time has the present for it whenever it is read.
    return {memory_id: memory.model_copy(update={"timestamp": NOON}) for memory_id, memory in memories.items()}


def _sorted_copy(journal: Path, place: Path) -> Path:
    """Write what a repair makes of lines that were moved: a journal in the order of its numbers."""
    entries = sorted(Journal(journal, {"memory"}).naming(()), key=lambda entry: entry.seq)
    place.write_bytes(Header.fresh().encode() + b"".join(entry.raw for entry in entries))
    return place


@pytest.mark.parametrize("seed", CASES)
def test_whatever_happened_to_the_files(seed: int, bob: Path, root: Path, tmp_path: Path) -> None:
    dice = random.Random(seed)
    done = _damage(root, dice)
    journal, before = bob / "memories.yaml", snapshot(root)
    readable = _memories(journal)
    report = examine(root, now=NOON)
    assert snapshot(root) == before, done
    assert "not_examined" not in {finding.code for agent in report.agents for finding in agent.findings}, (done, report)
    json.dumps([finding.as_dict() for agent in report.agents for finding in agent.findings])
    if "journal_backwards" in {finding.code for agent in report.agents for finding in agent.findings}:
        readable = _memories(_sorted_copy(journal, tmp_path / "sorted.yaml"))
    actions = repair_all(root, ["bob"], now=NOON)
    after = _memories(journal)
    assert {memory_id: after.get(memory_id) for memory_id in readable} == readable, (done, actions)
    again = {finding.code for agent in examine(root, now=NOON).agents for finding in agent.findings}
    mended = {action.code for action in actions if action.done and CODES[action.code].is_fixed}
    assert not mended & again, (done, actions)
    assert repair_all(root, ["bob"], now=NOON) == [action for action in actions if not action.done], done


def test_every_code_with_a_repair_has_a_remedy_and_the_other_way_round() -> None:
    promised = {code for code, entry in CODES.items() if entry.repair}
    mended_with_lines = {"journal_header", "journal_tail", "journal_records", "journal_backwards"}
    assert promised == {*REMEDIES, *mended_with_lines, "session_broken"}
