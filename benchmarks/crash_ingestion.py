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

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.checks import examine_agent
from agent_memory.care.checks.codes import Severity
from agent_memory.ingestion import runner_of
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import find_ingested, undo
from agent_memory.knowledge.pages.assignment import file_all
from agent_memory.knowledge.pages.page_items import load_texts
from agent_memory.knowledge.pages.page_watcher import keep_pages
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.items import drawn_from, get_source_id
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.topics.markdown import parse, render
from agent_memory.knowledge.topics.page_files import TopicFiles
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import utc_now
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory

_TURNS: Final = 60
_WINDOW: Final = 20
_TWO_AT_ONCE: Final = 0.2
_UNDONE: Final = 0.4
_MADE: Final = re.compile(r"(?<=^\*Last consolidated: )\d.*")
_ROUND_KILLS: Final = 6
"""After so many deaths a process of the round may live, so that there are rounds enough."""


@dataclass(slots=True)
class Report:
    """What was seen: how often a process was killed (and at what), how often one ended before, and what was wrong."""

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
    """Return how each process opens the folder."""
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
    service, knowledge = open_service("bob", settings_of(root)), Knowledge("bob", settings_of(root))
    for file in files:
        await Ingest(knowledge, service.report).file(file)
        await runner_of(knowledge, service).run()
    while (await runner_of(knowledge, service).run()).is_busy:  # noqa: ASYNC110 - who works says nothing when it is done
        await asyncio.sleep(0.01)
    await knowledge.close()
    await service.close()


async def take_back(root: Path, files: Sequence[Path]) -> None:
    """Forget files with all that came of them."""
    service, knowledge = keep_pages(open_service("bob", settings_of(root))), Knowledge("bob", settings_of(root))
    for file in files:
        taken = await find_ingested(knowledge, file.name)
        await undo(knowledge, service, [each.id for each in taken], NOBODY)
    await knowledge.close()
    await service.close()


async def problems_of(root: Path, rounds: Sequence[int]) -> list[str]:
    """Return what is wrong after some rounds, a sentence each."""
    service, knowledge = open_service("bob", settings_of(root)), Knowledge("bob", settings_of(root))
    episodes = [each async for each in knowledge.episodes.iter_all()]
    pages = [each async for each in knowledge.resources.iter_all() if each.resource_type == "document"]
    wanted = Counter(text for number in rounds for text in texts_of(number)[0])
    found = Counter(each.content for each in episodes)
    problems = [f"lost: {text}" for text in wanted - found] + [f"twice: {text}" for text in found - wanted]
    whole = Counter([await knowledge.text_of(each) for each in pages])
    if whole != Counter(texts_of(number)[1] for number in rounds):
        problems.append(f"{len(pages)} documents, not {len(rounds)} whole ones")
    expected = {item["id"]: item["content"] for each in episodes for item in drawn_from(each, each.content)}
    for page in pages:
        drawn = drawn_from(page, await knowledge.text_of(page))
        expected |= {item["id"]: item["content"] for item in drawn}
    items = [each for each in await service.searcher.list_all() if each.is_item]
    if Counter(each.content for each in items) != Counter(expected.values()) or {x.id for x in items} != set(expected):
        problems.append(f"{len(items)} items, not {len(expected)}")
    problems += await wrong_pages(Pages(knowledge, service), {each.id: each for each in items})
    problems += await problems_of_pages(root, knowledge, service)
    problems += await problems_of_entities(knowledge)
    await knowledge.close()
    await service.close()
    report = examine_agent(root, "bob", now=utc_now(), settings=settings_of(root))
    grave = [each for each in report.findings if each.severity >= Severity.WARNING and each.code != "journal_tail"]
    return problems + [f"doctor: {each.code}" for each in grave]


async def problems_of_entities(knowledge: Knowledge) -> list[str]:
    """Return what is wrong with entities, what names and relates them, and summaries, a sentence each."""
    sources = {each.id for storage in (knowledge.episodes, knowledge.resources) for each in await storage.valid()}
    entities = {each.id for each in await knowledge.entities.valid()}
    mentions, relations = await knowledge.mentions.valid(), await knowledge.relations.valid()
    named = Counter(link.id for each in mentions for link in each.links if link.rel == "from")
    spoken_of = {one for each in mentions for one in each.entities}
    spoken_of |= {one for each in relations for one in (each.from_id, each.to_id)}
    links = [link for each in (*mentions, *relations) for link in each.links if link.rel != "ended_by"]
    problems = [f"nothing is named in {one}" for one in sorted(sources - named.keys()) if one.startswith("epi-")]
    problems += [f"named {often} times in {one}" for one, often in named.items() if often > 1]
    problems += [f"entity {one} is named nowhere" for one in entities - spoken_of]
    problems += [f"{link.rel} leads to {link.id}, which is gone" for link in links if link.id not in sources | entities]
    summaries = await knowledge.summaries.valid()
    covered = Counter(one for each in summaries for one in each.covers)
    problems += [f"{one} is in {often} summaries" for one, often in covered.items() if often > 1]
    known = sources | {each.id for each in summaries}
    problems += [f"a summary covers {one}, which is gone" for one in covered if one not in known]
    for resource in await knowledge.resources.valid():
        turns = [each.id for each in await knowledge.episodes.linked_to(resource.id)]
        left = sum(one not in covered for one in turns)
        if left >= _WINDOW:
            problems.append(f"{left} of {len(turns)} turns are in no summary")
    return problems


async def wrong_pages(pages: Pages, items: Mapping[str, Memory]) -> list[str]:
    """Return which pages stand on what is not there, on something twice, or say what none of their items says."""
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
    """Return what is wrong with the pages, a sentence each."""
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
    differing = (each for each in pairs if _undated(each[1][0]) != _undated(each[1][1]))
    return next((f"line {at}: {some!r}, {others!r}" for at, (some, others) in differing), "")


def _undated(line: str) -> str:
    """Return a line of a page without the time at which the page was made."""
    return _MADE.split(line)[0]


def forked(body: Callable[[], object]) -> int:
    """Run a function in a child process, and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        body()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a child must never go on as its parent
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def asked(body: Callable[[], Any]) -> Any:
    """Return what a function returns in a child process, as JSON."""
    reading, writing = os.pipe()
    child = forked(lambda: os.write(writing, json.dumps(body()).encode()[:60_000]))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else ["the process that looked died"]


def killed(body: Callable[[], Coroutine[Any, Any, None]], delay: float) -> bool:
    """Let a process work and kill it after a time; tell whether it had not come to its end."""
    child = forked(lambda: asyncio.run(body()))
    until = time.monotonic() + delay
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] != 0


def run(folder: Path, kills: int, seed: int) -> Report:
    """Do rounds until so many processes were killed, or something is wrong."""
    report, chance, root, usual = Report(), random.Random(seed), folder / "root", {"taking in": 1.0, "undoing": 0.3}
    while report.kills < kills and not report.problems:
        files, number = write_files(folder, report.rounds), report.rounds
        usual["taking in"] = one_round(partial(work, root, files), "taking in", report, chance, usual["taking in"])
        report.rounds += 1
        looked = partial(_looked, root, [each for each in range(report.rounds) if each not in report.undone])
        report.problems += [f"round {number}: {each}" for each in asked(looked)]
        if chance.random() < _UNDONE and not report.problems:
            undoing = partial(take_back, root, files)
            usual["undoing"] = one_round(undoing, "undoing", report, chance, usual["undoing"])
            report.undone.append(number)
            looked = partial(_looked, root, [each for each in range(report.rounds) if each not in report.undone])
            report.problems += [f"round {number}, taken back: {each}" for each in asked(looked)]
    return report


def _looked(root: Path, rounds: Sequence[int]) -> list[str]:
    return asyncio.run(problems_of(root, rounds))


def one_round(
    body: Callable[[], Coroutine[Any, Any, None]], stage: str, report: Report, chance: random.Random, usual: float
) -> float:
    """Kill processes that do something until one comes to its end; return how long that one took."""
    for deaths in count():
        beside = forked(lambda: asyncio.run(body())) if chance.random() < _TWO_AT_ONCE else 0
        began = time.monotonic()
        died = killed(body, 600.0 if deaths >= _ROUND_KILLS else chance.uniform(0, usual))
        if beside:
            os.kill(beside, signal.SIGKILL)
            was_killed = os.waitpid(beside, 0)[1] != 0
            report.add(stage, was_killed)
        if not died:
            report.ended += 1
            return max(0.05, time.monotonic() - began)
        report.add(stage, 1)
    raise AssertionError("counting ends with a process that was not killed")


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, look, and print what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="for machines")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = run(Path(folder), chosen.kills, chosen.seed)
    if chosen.json:
        print(json.dumps(asdict(report)))
    else:
        at = ", ".join(f"{count} {stage}" for stage, count in report.stages.items())
        print(f"{report.kills} killed ({at}) in {report.rounds} rounds; {len(report.problems)} problems")
        for problem in report.problems[:20]:
            print(problem)
    return bool(report.problems)


if __name__ == "__main__":
    raise SystemExit(main())
