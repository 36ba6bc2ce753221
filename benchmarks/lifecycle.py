"""A year of use, and then tidying: is nothing lost, is the budget kept, does everything come back, is recall unchanged?

    python -m benchmarks.lifecycle --year [--operations 100000] [--embedder none|local] [--seed N] [--json]

One process stores, searches, opens, updates and forgets through `MemoryService` with a clock that is moved on after
each operation, a year in all. Some memories are opened again and again, most never. Then the memory is tidied by the
default rules, run after run until nothing is suggested, and every run is taken back. Exits with 1 when one of these is
broken:

- A plan changes nothing, and no run deletes anything.
- No run moves more than its budget.
- What was used in the last 90 days (opened by its id) stays.
- Undo brings back every memory with all its fields.
- Each memory that was used in the last 90 days is found by its own words at the same place, with the same above it,
  after the first run, after the last and after undo.

Told besides: how many of these answers are not the same among the first five hits of what was used in the last 90 days
(where what was archived leaves its place, others may come in behind). A search weighs words by how many memories have
them, so that what shares a word or two with a question may change places where some are archived.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

from agent_memory.care.archive import Archive
from agent_memory.care.tidying import Tidying
from agent_memory.errors import AgentMemoryError
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.harness import ManualClock, build_parser, print_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import Memory

_BEGIN: Final = datetime(2025, 1, 1, tzinfo=UTC)
_YEAR: Final = timedelta(days=365)
_LATELY: Final = timedelta(days=90)
_QUESTIONS: Final = 300
_TWINS: Final = 0.02
"""Share of the statements that repeat the one before, in other punctuation."""
_SHOWN: Final = 5
_STORES, _SEARCHES, _OPENS, _UPDATES = 0.12, 0.5, 0.25, 0.08
"""Shares of the operations; the rest forgets."""
_CATEGORIES: Final = ("note", "question", "task", "preference", "decision", "bugfix", "insight", "discovery")
_PEOPLE: Final = (
    "Ada", "Ben", "Chloe", "Dario", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam", "Mina", "Nora",
    "Otto", "Priya", "Quinn", "Rosa", "Sami", "Tess", "Umar", "Vera", "Wim", "Xenia", "Yann", "Zoe",
)  # fmt: skip
_THINGS: Final = (
    "ledger", "harbour gate", "rate limit", "backup", "invoice", "crane", "tea kettle", "standup", "warehouse", "badge",
    "release", "printer", "greenhouse", "tariff", "router", "canteen", "archive room", "bicycle", "audit", "lighthouse",
)  # fmt: skip
_SAID: Final = (
    "{who} looks after the {thing} in {place}.", "The {thing} in {place} is checked by {who} on every {day}.",
    "{who} asked when the {thing} in {place} is due", "Remind {who} of the {thing} in {place} on {day}.",
    "{who} wants the {thing} in {place} painted blue.", "The {thing} in {place} broke on a {day}, said {who}.",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_SYLLABLES: Final = ("bar", "den", "fol", "gar", "hul", "kem", "lin", "mor", "nas", "pel", "rim", "sut", "tav", "wex")


def place(number: int) -> str:
    """Return the name of a place: four syllables, another one for each of some 38,000 numbers."""
    syllables = []
    for _ in range(4):
        number, at = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[at])
    return "".join(syllables).capitalize()


@dataclass
class YearReport:
    """Numbers and faults of a run.

    Attributes:
        operations, memories, used_lately, questions: How many.
        runs, archived, merged, budget: Runs of tidying, memories they archived, merged ones among these, and the most
            that the first might move.
        moved: Of the questions, those of which the memory asked for has another place, or something else is above it:
            after the first run, after the last, after undo.
        changed: The same for all of the first five hits.
        found: Share of the questions of which the memory asked for is among the first five, before and after.
        seconds: Of the year, of the first plan, of the first run, of all undos.
        problems: What was broken.
    """

    operations: int
    memories: int = 0
    used_lately: int = 0
    questions: int = 0
    runs: int = 0
    archived: int = 0
    merged: int = 0
    budget: int = 0
    moved: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; 0 where nothing was broken."""
    parser = build_parser("lifecycle", __doc__, "--embedder", "--seed", "--json", embedder="none", seed=1)
    parser.add_argument("--year", action="store_true", required=True, help="the one there is")
    parser.add_argument("--operations", type=int, default=100_000)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(run(Path(root), args.operations, args.embedder, args.seed))
    print_report(asdict(report), [told(report)], as_json=args.json)
    return 1 if report.problems else 0


def told(report: YearReport) -> str:
    """Return a report for people."""
    lines = [f"{name.replace('_', ' '):12}  {value}" for name, value in asdict(report).items() if name != "problems"]
    return "\n".join([*lines, *(f"BROKEN: {problem}" for problem in report.problems)])


async def run(root: Path, operations: int, embedder: str, seed: int) -> YearReport:
    """Live a year, tidy, and take it back."""
    settings = ServiceSettings(storage_root=str(root), embedder=cast("Literal['none', 'local']", embedder))
    clock, report = ManualClock(_BEGIN), YearReport(operations)
    begun = time.perf_counter()
    service = _opened_service(settings, clock)
    try:
        await live(service, clock, operations, random.Random(seed))
    finally:
        await service.close()
    report.seconds["year"] = round(time.perf_counter() - begun, 1)
    service = _opened_service(settings, clock)  # what the first had begun behind its answers is over
    archive = Archive(service, clock=clock)
    try:
        await TidyingJudge(service, archive, clock, report, random.Random(seed)).judge()
    finally:
        await archive.close()
        await service.close()
    return report


def _opened_service(settings: ServiceSettings, clock: ManualClock) -> MemoryService:
    return MemoryService(FileStorage("bench", settings=settings, clock=clock), settings, clock=clock)


async def live(service: MemoryService, clock: ManualClock, operations: int, choose: random.Random) -> None:
    """Use a memory for a year: what is opened is one of a few, most of the time."""
    alive, said = list[str](), ""
    for number in range(operations):
        clock.now = _BEGIN + _YEAR * number / operations
        what = choose.random()
        if what < _STORES or len(alive) < _SHOWN:
            said = f"{said}!" if said and choose.random() < _TWINS else _said(number)
            stored = await service.store({"content": said, "category": choose.choice(_CATEGORIES)})
            alive += [stored.memory.id] if stored.memory.id not in alive[-1:] else []
        elif what < _STORES + _SEARCHES:
            await service.search(_question(choose.choice(_PEOPLE), choose.choice(_THINGS)))
        elif what < _STORES + _SEARCHES + _OPENS:
            await _opened(service, alive, choose)
        elif what < _STORES + _SEARCHES + _OPENS + _UPDATES:
            await _changed(service, choose.choice(alive), choose)
        else:
            await _forgotten(service, alive, choose)
    await service.settle()


def _said(number: int) -> str:
    """Return a statement about a place of its own."""
    choose = random.Random(number)
    who, thing, day = choose.choice(_PEOPLE), choose.choice(_THINGS), choose.choice(_DAYS)
    return choose.choice(_SAID).format(who=who, thing=thing, day=day, place=place(number))


def _question(who: str, thing: str) -> str:
    return f"what about {who} and the {thing}"


async def _opened(service: MemoryService, alive: list[str], choose: random.Random) -> None:
    at = min(len(alive) - 1, int(choose.paretovariate(0.7)) - 1)
    try:
        await service.open(alive[at] if choose.random() < 0.5 else alive[-1 - at])
    except AgentMemoryError:  # it was replaced by another text, and is gone
        alive.pop(at)


async def _changed(service: MemoryService, one: str, choose: random.Random) -> None:
    try:
        await service.update(one, {"tags": [choose.choice(_THINGS)]})
    except AgentMemoryError:
        return


async def _forgotten(service: MemoryService, alive: list[str], choose: random.Random) -> None:
    one = alive.pop(choose.randrange(len(alive)))
    try:
        await service.forget(one)
    except AgentMemoryError:
        return


class TidyingJudge:
    """Tidies and judges.

    Args:
        service: Of the memory.
        archive: Its archive.
        clock: The present.
        report: What is found is added to it.
        choose: Which questions are asked.
    """

    def __init__(
        self, service: MemoryService, archive: Archive, clock: ManualClock, report: YearReport, choose: random.Random
    ) -> None:
        self._service, self._archive, self._now = service, archive, clock()
        self._report, self._choose = report, choose
        self._tidying = Tidying(archive)

    async def judge(self) -> None:
        """Do all of it."""
        report, before = self._report, await self._live()
        lately = {one for one, memory in before.items() if self._is_recent(memory)}
        asked = self._choose.sample(sorted(lately), min(_QUESTIONS, len(lately)))
        report.memories, report.used_lately, report.questions = len(before), len(lately), len(asked)
        answers = await self._answers(asked, before, lately)
        report.found = [_share(answers)]
        await self._tidied(before)
        after = await self._answers(asked, before, lately)
        report.found.append(_share(after))
        self._compare(answers, after)
        await self._tidied_to_the_end(before, lately)
        self._compare(answers, await self._answers(asked, before, lately))
        await self._undone(before)
        self._compare(answers, await self._answers(asked, before, lately))
        if any(report.moved):
            report.problems.append(f"answers moved: {report.moved} of {report.questions}")

    def _compare(self, before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
        self._report.moved.append(sum(_up_to(one, before[one]) != _up_to(one, after[one]) for one in before))
        self._report.changed.append(_different(before, after))

    def _is_recent(self, memory: Memory) -> bool:
        return memory.last_accessed is not None and self._now - memory.last_accessed < _LATELY

    async def _live(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in await self._service.searcher.list_all()}

    async def _answers(self, asked: Sequence[str], known: dict[str, Memory], lately: set[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in asked:
            hits = (await self._service.search(known[one].content, _SHOWN)).results
            found[one] = [hit.memory.id for hit in hits if hit.memory.id in lately]
        return found

    async def _tidied(self, before: dict[str, Memory]) -> None:
        report, begun = self._report, time.perf_counter()
        plan = await self._tidying.plan()
        report.seconds["plan"] = round(time.perf_counter() - begun, 2)
        report.budget = plan.budget.most
        if await self._live() != before or self._archive.exists():
            report.problems.append("a plan has changed something")
        begun = time.perf_counter()
        await self._one_run()
        report.seconds["run"] = round(time.perf_counter() - begun, 2)
        await self._check_kept(before)

    async def _one_run(self) -> int:
        report = self._report
        plan = await self._tidying.plan()
        done = await self._tidying.apply(plan)
        if done.run is None:
            return 0
        report.runs += 1
        report.archived += done.moved
        report.merged += sum(each.action == "merge" for each in done.done)
        if done.moved > plan.budget.most:
            report.problems.append(f"a run moved {done.moved}, at most {plan.budget.most} were allowed")
        if done.left_out:
            report.problems.append(f"{len(done.left_out)} were left out though nobody used them")
        return done.moved

    async def _tidied_to_the_end(self, before: dict[str, Memory], lately: set[str]) -> None:
        while await self._one_run():
            pass
        await self._check_kept(before)
        if gone := lately - (await self._live()).keys():
            self._report.problems.append(f"{len(gone)} that were used lately were archived")

    async def _check_kept(self, before: dict[str, Memory]) -> None:
        live = await self._live()
        away = {each.id: each.memory for each in await self._archive.everything()}
        lost = before.keys() - live.keys() - away.keys()
        if lost or live.keys() & away.keys():
            self._report.problems.append(f"{len(lost)} are in neither file, or some in both")
        if any(before[one] != memory.model_copy(update={"tags": before[one].tags}) for one, memory in away.items()):
            self._report.problems.append("an archived memory is not what it was")

    async def _undone(self, before: dict[str, Memory]) -> None:
        begun = time.perf_counter()
        for _ in range(self._report.runs):
            await self._tidying.undo()
        self._report.seconds["undo"] = round(time.perf_counter() - begun, 2)
        if await self._live() != before:
            self._report.problems.append("undo has not brought everything back as it was")


def _share(answers: dict[str, list[str]]) -> float:
    return round(sum(one in found for one, found in answers.items()) / max(1, len(answers)), 3)


def _up_to(one: str, found: list[str]) -> list[str]:
    return found[: found.index(one) + 1] if one in found else found


def _different(before: dict[str, list[str]], after: dict[str, list[str]]) -> int:
    return sum(after[one][: len(found)] != found for one, found in before.items())


if __name__ == "__main__":
    sys.exit(main())
