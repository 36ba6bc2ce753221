"""Kills processes that take in documents and conversations, draw items, make pages, or undo it; looks what is left.

    python -m benchmarks.crash_ingestion [--kills 200] [--seed 0] [--json]

In each round one process takes in a chat and a long document and does the background work, and dies by SIGKILL at a
random moment; another one does the same, until one has come to its end. Now and then two work at once. After some
rounds the files of the round are taken back in the same way. Then a fresh process compares: each turn and each document
is there once and whole, so is each item that the rules draw from them, each turn names who it names once and is in one
summary at most, nothing is left of what was taken back, each topic has one page of all that is filed there, each item
once, its footnotes lead to the very words, nothing is left beside the pages, and the doctor finds nothing wrong. Ends
with 1 if not.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine_agent
from agent_memory.ingestion import runner_of
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import find_ingested, undo
from agent_memory.knowledge.pages.assignment import file_all
from agent_memory.knowledge.pages.page import parse, render
from agent_memory.knowledge.pages.page_files import TopicFiles
from agent_memory.knowledge.pages.page_items import load_texts
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.items import drawn_from, get_source_id
from agent_memory.memory import NOBODY
from agent_memory.memory.features import attach_withdrawals
from agent_memory.models import utc_now
from agent_memory.settings import ServiceSettings
from benchmarks.crash.process import ForkedProcess
from benchmarks.harness import build_parser, open_agent, print_report

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory
    from benchmarks.crash.process import MessagePipe

_TURNS: Final = 60
_CHECK_SECONDS: Final = 600.0
_WINDOW: Final = 20
_TWO_AT_ONCE: Final = 0.2
_UNDONE: Final = 0.4
_MADE: Final = re.compile(r"(?<=^\*Last consolidated: )\d.*")
_ROUND_KILLS: Final = 6
"""After so many deaths a process of the round may live, so that there are rounds enough."""


@dataclass(slots=True)
class IngestionKills:
    """Numbers of kills by stage, of processes that ended before, and faults."""

    kills: int = 0
    ended: int = 0
    rounds: int = 0
    undone: list[int] = field(default_factory=list)
    stages: dict[str, int] = field(default_factory=dict)  # no Counter: asdict of Python 3.11 breaks it
    problems: list[str] = field(default_factory=list)

    def add(self, stage: str, kills: int) -> None:
        """Count processes that were killed at something."""
        self.kills, self.stages[stage] = self.kills + kills, self.stages.get(stage, 0) + kills


def settings_of(root: Path) -> ServiceSettings:
    """Return the settings of each process."""
    return ServiceSettings(storage_root=str(root), embedder="none")


def texts_of(number: int) -> tuple[list[str], str]:
    """Return the turns of a round, and its document, which is too long for a line."""
    turns = [f"In round {number} Tobias Reuter keeps {at * 7} boxes of tea on shelf {at}." for at in range(_TURNS)]
    document = "\n".join(f"Room {at} of house {number} has {at + 2} windows to the yard." for at in range(220))
    return turns, document


def write_files(folder: Path, number: int) -> list[Path]:
    """Write the files of a round."""
    turns, document = texts_of(number)
    chat, page = folder / f"chat{number}.jsonl", folder / f"page{number}.md"
    chat.write_text("\n".join(json.dumps({"speaker": "Ada", "text": text}) for text in turns), encoding="utf-8")
    page.write_text(document, encoding="utf-8")
    return [chat, page]


async def work(root: Path, files: Sequence[Path]) -> None:
    """Take in files and do the background work."""
    async with open_agent(settings_of(root)) as (service, knowledge):
        for file in files:
            await Ingest(knowledge, service.report).file(file)
            await runner_of(knowledge, service).run()
        while (await runner_of(knowledge, service).run()).is_busy:  # noqa: ASYNC110 - who works says nothing when it is done
            await asyncio.sleep(0.01)


async def take_back(root: Path, files: Sequence[Path]) -> None:
    """Forget files with all that came of them."""
    async with open_agent(settings_of(root)) as (service, knowledge):
        attach_withdrawals(service)
        for file in files:
            taken = await find_ingested(knowledge, file.name)
            await undo(knowledge, service, [each.id for each in taken], NOBODY)


async def problems_of(root: Path, rounds: Sequence[int]) -> list[str]:
    """Return the faults after some rounds, a sentence each."""
    async with open_agent(settings_of(root)) as (service, knowledge):
        episodes = [episode async for episode in knowledge.episodes.iter_all()]
        pages = [resource async for resource in knowledge.resources.iter_all() if resource.resource_type == "document"]
        wanted = Counter(text for number in rounds for text in texts_of(number)[0])
        found = Counter(episode.content for episode in episodes)
        problems = [f"lost: {text}" for text in wanted - found] + [f"twice: {text}" for text in found - wanted]
        whole = Counter([await knowledge.text_of(page) for page in pages])
        if whole != Counter(texts_of(number)[1] for number in rounds):
            problems.append(f"{len(pages)} documents, not {len(rounds)} whole ones")
        expected = {
            item["id"]: item["content"] for episode in episodes for item in drawn_from(episode, episode.content)
        }
        for page in pages:
            drawn = drawn_from(page, await knowledge.text_of(page))
            expected |= {item["id"]: item["content"] for item in drawn}
        items = [memory for memory in await service.searcher.list_all() if memory.is_item]
        if Counter(item.content for item in items) != Counter(expected.values()) or {x.id for x in items} != set(
            expected
        ):
            problems.append(f"{len(items)} items, not {len(expected)}")
        problems += await wrong_pages(Pages(knowledge, service), {item.id: item for item in items})
        problems += await problems_of_pages(root, knowledge, service)
        problems += await problems_of_entities(knowledge)
    report = examine_agent(root, "bob", now=utc_now(), settings=settings_of(root))
    codes = [finding.code for finding in report.findings if finding.severity >= Severity.WARNING]
    return problems + [f"doctor: {code}" for code in codes if code != "journal_tail"]


async def problems_of_entities(knowledge: Knowledge) -> list[str]:
    """Return the faults of entities, mentions, relations and summaries, a sentence each."""
    sources = {each.id for storage in (knowledge.episodes, knowledge.resources) for each in await storage.valid()}
    entities = {entity.id for entity in await knowledge.entities.valid()}
    mentions, relations = await knowledge.mentions.valid(), await knowledge.relations.valid()
    named = Counter(link.id for mention in mentions for link in mention.links if link.rel == "from")
    spoken_of = {entity for mention in mentions for entity in mention.entities}
    spoken_of |= {one for relation in relations for one in (relation.from_id, relation.to_id)}
    links = [link for mention in (*mentions, *relations) for link in mention.links if link.rel != "ended_by"]
    unnamed = sorted(source for source in sources - named.keys() if source.startswith("epi-"))
    problems = [f"nothing is named in {source}" for source in unnamed]
    problems += [f"named {often} times in {one}" for one, often in named.items() if often > 1]
    problems += [f"entity {entity} is named nowhere" for entity in entities - spoken_of]
    problems += [f"{link.rel} leads to {link.id}, which is gone" for link in links if link.id not in sources | entities]
    summaries = await knowledge.summaries.valid()
    covered = Counter(cover for summary in summaries for cover in summary.covers)
    problems += [f"{one} is in {often} summaries" for one, often in covered.items() if often > 1]
    known = sources | {summary.id for summary in summaries}
    problems += [f"a summary covers {one}, which is gone" for one in covered if one not in known]
    for resource in await knowledge.resources.valid():
        turns = [each.id for each in await knowledge.episodes.linked_to(resource.id)]
        left = sum(turn not in covered for turn in turns)
        if left >= _WINDOW:
            problems.append(f"{left} of {len(turns)} turns are in no summary")
    return problems


async def wrong_pages(pages: Pages, items: Mapping[str, Memory]) -> list[str]:
    """Return the pages with absent, repeated or foreign items."""
    problems = []
    for topic in await pages.list_shown():
        gone, twice = set(topic.item_ids) - items.keys(), len(topic.item_ids) - len(set(topic.item_ids))
        page = parse(await pages.get_text(topic)) if topic.consolidated_at is not None else None
        claims = page.claims if page is not None else ()
        notes = [note for claim in claims for note in claim.notes]
        strange = [note.item for note in notes if note.item not in items]
        if gone or twice or strange:
            problems.append(f"page {topic.name}: {len(gone)} gone, {twice} twice, {len(strange)} of no item")
    return problems


async def problems_of_pages(root: Path, knowledge: Knowledge, service: MemoryService) -> list[str]:
    """Return the faults of the pages, a sentence each."""
    await runner_of(knowledge, service, at_once=True).run()  # few new items wait for more
    topics, files = await Pages(knowledge, service).list_shown(), TopicFiles(root / "bob" / "topics")
    filed, problems = await file_all(knowledge, service, topics), list[str]()
    for topic in topics:
        members, saved = {each.id for each in filed.members.get(topic.id, ())}, files.read(topic.name)
        if saved is None or saved.is_edited:
            problems.append(f"page {topic.name}: {'is not there' if saved is None else 'taken for edited'}")
            continue
        if set(topic.item_ids) != members:
            problems.append(f"page {topic.name}: {len(topic.item_ids)} items, not {len(members)}")
            continue
        if difference := _first_difference(render(saved.page), topic.body):
            problems.append(f"page {topic.name}: file and record differ: {difference}")
            continue
        sources = await load_texts(knowledge, map(get_source_id, filed.members[topic.id]))
        for note in saved.page.notes:
            passage = sources.get(note.source)
            if passage is None or note.quote not in {"", passage.text[note.start : note.end]}:
                problems.append(f"page {topic.name}: a footnote leads nowhere")
    if len({topic.name for topic in topics}) < len(topics):
        problems.append(f"{len(topics)} topics")
    hidden = [path.name for path in (root / "bob" / "topics").glob(".*")]
    return [*problems, *(f"left beside the pages: {name}" for name in hidden)]


def _first_difference(one: str, other: str) -> str:
    """Return the first line of two pages that differs, of both; empty if none does.

    When they were made may differ: a process died between the two, and the next one only cut lines out of the second.
    """
    pairs = enumerate(zip_longest(one.split("\n"), other.split("\n"), fillvalue=""), 1)
    differing = (pair for pair in pairs if _undated(pair[1][0]) != _undated(pair[1][1]))
    return next((f"line {at}: {some!r}, {others!r}" for at, (some, others) in differing), "")


def _undated(line: str) -> str:
    """Return a line of a page without the time at which the page was made."""
    return _MADE.split(line)[0]


def _run_coroutine(_: MessagePipe, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


def _check(say: MessagePipe, root: Path, rounds: Sequence[int]) -> None:
    say(problems=asyncio.run(problems_of(root, rounds)))


def check(root: Path, report: IngestionKills) -> list[str]:
    """Return the present faults, as another process finds them."""
    rounds = [number for number in range(report.rounds) if number not in report.undone]
    child = ForkedProcess(root.parent / "check.log", _check, root, rounds)
    messages = child.listen(_CHECK_SECONDS)
    child.close()
    return messages[-1].get("problems", [str(messages[-1])]) if messages else ["the process that looked died"]


def run(folder: Path, kills: int, seed: int) -> IngestionKills:
    """Do rounds until so many processes were killed, or something is wrong."""
    report, chance, root, usual = (
        IngestionKills(),
        random.Random(seed),
        folder / "root",
        {"taking in": 1.0, "undoing": 0.3},
    )
    while report.kills < kills and not report.problems:
        files, number = write_files(folder, report.rounds), report.rounds
        usual["taking in"] = one_round(partial(work, root, files), "taking in", report, chance, usual["taking in"])
        report.rounds += 1
        report.problems += [f"round {number}: {problem}" for problem in check(root, report)]
        if chance.random() < _UNDONE and not report.problems:
            undoing = partial(take_back, root, files)
            usual["undoing"] = one_round(undoing, "undoing", report, chance, usual["undoing"])
            report.undone.append(number)
            report.problems += [f"round {number}, taken back: {problem}" for problem in check(root, report)]
    return report


def one_round(
    body: Callable[[], Coroutine[Any, Any, None]],
    stage: str,
    report: IngestionKills,
    chance: random.Random,
    usual: float,
) -> float:
    """Kill processes that do something until one comes to its end; return how long that one took."""
    log = Path(os.devnull)
    for deaths in count():
        second = ForkedProcess(log, _run_coroutine, body) if chance.random() < _TWO_AT_ONCE else None
        child, started = ForkedProcess(log, _run_coroutine, body), time.monotonic()
        died = child.kill_after(600.0 if deaths >= _ROUND_KILLS else chance.uniform(0, usual))
        child.close()
        if second is not None:
            second.close()
            report.add(stage, second.wait() != 0)
        if not died:
            report.ended += 1
            return max(0.05, time.monotonic() - started)
        report.add(stage, 1)
    raise AssertionError("counting ends with a process that was not killed")


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, look, and print what was seen."""
    parser = build_parser("crash_ingestion", __doc__, "--kills", "--seed", "--json", kills=200)
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = run(Path(folder), chosen.kills, chosen.seed)
    stages = ", ".join(f"{count} {stage}" for stage, count in report.stages.items())
    head = f"{report.kills} killed ({stages}) in {report.rounds} rounds; {len(report.problems)} problems"
    print_report(asdict(report), [head, *report.problems[:20]], as_json=chosen.json)
    return bool(report.problems)


if __name__ == "__main__":
    raise SystemExit(main())
