"""Time of a lookup among many records, and among many bare names."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities import Described
from agent_memory.knowledge.entities.matching import Matcher
from benchmarks.deduplication.data import SETS, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_QUESTIONS: Final = 500
_GIVEN: Final = "Ada Ben Carla David Elif Farid Greta Hugo Ines Jonas Karin Liam Mara Nils Olga Paul Rosa Sven Tara Uwe"
_BEGIN: Final = "Al Ber Cas Dor El Fin Gar Hol Is Jan Kel Lor Mor Nor Os Pet Ro Sal Tor Ul Ver Wil Yar Zel"
_MIDDLE: Final = "an en in on ar er ir or am em"
_END: Final = "berg dorf feld hoff mann son sen ski stein wald ez ini"
_PARTS: Final = "auth billing cart checkout email export gateway import invoice ledger login mail metrics order payment"
_ROLES: Final = "api cache db indexer job proxy queue replica router scheduler service store sync web worker"


def records(folder: Path) -> list[Described]:
    """Return all distinct records of the four sets, first those of one side, mixed."""
    found = [
        described
        for split in ("train", "valid")
        for name in SETS
        for side in ("ours", "theirs")
        for described in getattr(load(folder, name, split), side)
    ]
    random.Random(0).shuffle(found)
    return found


def names(count: int) -> list[Described]:
    """Return names of people and of services, half of each, all different, most by a number or a few letters."""
    chance = random.Random(0)
    surnames = [a + b + c for a in _BEGIN.split() for b in _MIDDLE.split() for c in _END.split()]
    people = [(f"{given} {last}", "person") for given in _GIVEN.split() for last in surnames]
    services = [
        (f"{part}-{role}-{number}", "service")
        for part in _PARTS.split()
        for role in _ROLES.split()
        for number in range(1, 2 + count // 450)
    ]
    chance.shuffle(people)
    chance.shuffle(services)
    return [Described(name, kind) for pair in zip(people, services, strict=False) for name, kind in pair][:count]


def look_up(folder: Path, known: int) -> dict[str, dict[str, float]]:
    """Return milliseconds of CPU for a lookup, and how many were merged and suggested, by what is known.

    Of the names all are different things, so that each merge of theirs is wrong.
    """
    every = records(folder)
    rows = {"records": _timed(every[:known], every[-_QUESTIONS:])}
    named = names(known + _QUESTIONS)
    return {**rows, "names": _timed(named[:known], named[-_QUESTIONS:])}


def _timed(known: Sequence[Described], asked: Sequence[Described]) -> dict[str, float]:
    matcher = Matcher((str(number), described) for number, described in enumerate(known))
    spent, said = [], {"merge": 0, "suggest": 0}
    for described in asked:
        began = time.process_time()
        match = matcher.find(described)
        spent.append(1000 * (time.process_time() - began))
        if match is not None:
            said[match.decision] += 1
    spent.sort()
    times = {"p50": spent[len(spent) // 2], "p95": spent[int(0.95 * len(spent))]}
    return {"known": len(matcher), "asked": len(asked), **times, "merged": said["merge"], "suggested": said["suggest"]}
