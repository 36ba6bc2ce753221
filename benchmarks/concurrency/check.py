"""Judges what several processes were told against what is there afterwards. Pure: records in, findings out.

A record is what one process was told about one operation, with the moments (of a clock that all processes share)
between which it happened. An operation that ended before another began came first; of two that overlap, either may
have. So the text of a memory that several processes change must be that of a change which no other one followed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class AcknowledgedWrite:
    """Acknowledged operation on one memory."""

    op: str
    memory_id: str
    text: str
    begin: float
    end: float

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> AcknowledgedWrite:
        """Return the record as a process wrote it."""
        return cls(record["op"], record["id"], record.get("text", ""), record["begin"], record["end"])


@dataclass(slots=True)
class ExpectedTexts:
    """Expected texts, absent memories and contradictions."""

    texts: dict[str, set[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def expected(before: Mapping[str, str], told: Iterable[AcknowledgedWrite]) -> ExpectedTexts:
    """Return the expected state after `told`, from the memories `before`."""
    writes: dict[str, list[AcknowledgedWrite]] = defaultdict(list)
    forgets: dict[str, list[AcknowledgedWrite]] = defaultdict(list)
    repeats: list[AcknowledgedWrite] = []
    for each in told:
        if each.op == "forget":
            forgets[each.memory_id].append(each)
        elif each.op == "duplicate":
            repeats.append(each)
        else:
            writes[each.memory_id].append(each)
    outcome = ExpectedTexts()
    for memory_id in {*before, *writes, *forgets}:
        first = [AcknowledgedWrite("before", memory_id, before[memory_id], -2, -1)] if memory_id in before else []
        _judge_one(memory_id, first + writes[memory_id], forgets[memory_id], outcome)
    known = {*before, *writes}
    for repeat in repeats:
        if repeat.memory_id not in known:
            outcome.problems.append(f"a text was said to be known as {repeat.memory_id}, which nobody stored")
        if any(forget.end < repeat.begin for forget in forgets[repeat.memory_id]):
            outcome.problems.append(f"a text was said to be known as {repeat.memory_id}, which was forgotten before")
    _judge_captures(writes, forgets, outcome)
    return outcome


def compare(wanted: ExpectedTexts, found: Mapping[str, str]) -> list[str]:
    """Return the faults of the memories `found` (ID to text)."""
    problems = list(wanted.problems)
    problems += [f"lost: {memory_id}" for memory_id in wanted.texts.keys() - found.keys()]
    problems += [f"came back though forgotten: {memory_id}" for memory_id in wanted.gone & found.keys()]
    problems += [
        f"nobody was told of {memory_id}: {found[memory_id]!r}"
        for memory_id in found.keys() - wanted.texts.keys() - wanted.gone
    ]
    for memory_id, texts in wanted.texts.items():
        if memory_id in found and found[memory_id] not in texts:
            problems.append(f"lost update of {memory_id}: {found[memory_id]!r} instead of {sorted(texts)}")
    counted = Counter(" ".join(text.split()).casefold() for text in found.values())
    problems += [f"kept {count} times: {text!r}" for text, count in counted.items() if count > 1]
    return sorted(problems)


def _judge_one(
    memory_id: str, writes: list[AcknowledgedWrite], forgets: list[AcknowledgedWrite], outcome: ExpectedTexts
) -> None:
    stored = [write for write in writes if write.op != "update"]
    if len(stored) != 1:
        outcome.problems.append(f"{memory_id} was stored {len(stored)} times")
    if len(forgets) > 1:
        outcome.problems.append(f"{memory_id} was forgotten {len(forgets)} times")
    if forgets:
        outcome.gone.add(memory_id)
        if any(write.begin > forgets[0].end for write in writes):
            outcome.problems.append(f"{memory_id} was changed after it was forgotten")
        return
    outcome.texts[memory_id] = {
        write.text for write in writes if not any(later.begin > write.end for later in writes if later is not write)
    }


def _judge_captures(
    writes: Mapping[str, list[AcknowledgedWrite]],
    forgets: Mapping[str, list[AcknowledgedWrite]],
    outcome: ExpectedTexts,
) -> None:
    """Check that no forgotten text is captured again, unless stored in between."""
    ended: dict[str, float] = {}
    for memory_id, each in filter(itemgetter(1), forgets.items()):
        for write in writes.get(memory_id, ()):
            ended[write.text] = min(ended.get(write.text, each[0].end), each[0].end)
    for several in writes.values():
        for write in several:
            if write.op == "capture" and ended.get(write.text, write.begin) < write.begin:
                outcome.problems.append(f"captured again though forgotten: {write.text!r}")
