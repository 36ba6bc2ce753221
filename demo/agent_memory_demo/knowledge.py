"""From a conversation to pages and answers: `python -m agent_memory_demo.knowledge [--home FOLDER] [FILE …]`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.knowledge import MemoryManager, RetrievalMode, tools
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pages.assignment import count_unfiled
from agent_memory.knowledge.pages.page import parse
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import MemoryService, open_service
from agent_memory.memory.features import attach_withdrawals
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import Topic

TALK: Final = Path(__file__).with_name("heron.jsonl")
AGENT: Final = "crew"
SHOWN: Final = "heron"
"""The topic of our own conversation whose page is printed; of other files it is the largest."""
QUESTIONS: Final = {
    "Is the Heron green or deep blue?": "deep blue",
    "How much does the berth at Kettle Lock cost a year?": "1,840",
    "What is Priya allergic to?": "epoxy",
    "When is the first trip?": "20 June",
}
"""What is asked about our own conversation, and words of the answer."""
_LEAST_PAGES, _LEAST_NOTES = 3, 10
_INTRODUCTION: Final = """
Three people restore a boat and write to each other about it, from March to June: demo/agent_memory_demo/heron.jsonl.
Their conversation is ingested and cut into passages, from which pages are written. No language model and no network
is used. The command line does the same:

  agent-memory ingest -a crew FILE
  agent-memory knowledge topics -a crew
  agent-memory knowledge topic -a crew heron
"""


@dataclass(frozen=True, slots=True)
class Shelf:
    """What one agent has: its memories, what it was given, its pages, and who answers."""

    service: MemoryService
    knowledge: Knowledge
    pages: Pages
    manager: MemoryManager

    @classmethod
    def opened(cls, settings: ServiceSettings) -> Shelf:
        """Open the agent of this demo; nothing is read yet."""
        service, knowledge = attach_withdrawals(open_service(AGENT, settings)), Knowledge(AGENT, settings)
        return cls(service, knowledge, Pages(knowledge, service), MemoryManager(service=service))

    async def close(self) -> None:
        """Close the files."""
        await self.manager.close()
        await self.knowledge.close()
        await self.service.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Ingest a conversation, write pages, show one, and ask; return 0 on success."""
    parser = argparse.ArgumentParser(prog="agent_memory_demo.knowledge", description="From a talk to pages.")
    parser.add_argument("files", nargs="*", type=Path, help="ingested instead of the conversation of the demo")
    parser.add_argument("--home", type=Path, help="folder that plays the home directory (default: a temporary one)")
    parser.add_argument("--ask", action="append", default=[], help="a question; may be given several times")
    parser.add_argument("--words", action="store_true", help="find by words alone, without the local embedder")
    args = parser.parse_args(arguments)
    home = (args.home or Path(tempfile.mkdtemp(prefix="agent-memory-demo-"))).resolve()
    home.mkdir(parents=True, exist_ok=True)
    settings = ServiceSettings(storage_root=str(home / ".amplifier" / "memory"))
    if args.words:
        settings = settings.model_copy(update={"embedder": "none"})
    questions = dict.fromkeys(args.ask, "") or ({} if args.files else QUESTIONS)
    try:
        status = asyncio.run(show(settings, args.files or [TALK], questions))
    except AgentMemoryError as error:
        print(f"\n{error.message} {error.recovery}", file=sys.stderr)
        status = 1
    if args.home:
        print(f"\n  All files are in {home}/.amplifier/memory/{AGENT}\n")
    elif not status:
        shutil.rmtree(home)
        print("\n  The files are removed now. To keep them:  make demo-knowledge HOME_DIR=FOLDER\n")
    return status


async def show(settings: ServiceSettings, files: Sequence[Path], questions: dict[str, str]) -> int:
    """Do all of it in one process, and print it."""
    if files == [TALK]:
        print(_INTRODUCTION)
    shelf = Shelf.opened(settings)
    try:
        await take_in(shelf, files)
        topics = [topic for topic in await shelf.pages.list_shown() if topic.body]
        status = await show_topics(shelf, topics, is_ours=files == [TALK])
        for question, expected in questions.items():
            status |= await ask(shelf, question, expected)
    finally:
        await shelf.close()
    return status


async def take_in(shelf: Shelf, files: Sequence[Path]) -> None:
    """Ingest files, extract items and write pages."""
    title("Ingested")
    for file in files:
        done = await Ingest(shelf.knowledge, shelf.service.report).file(file)
        print(f"  {done.name}: {done.new:,} new, {done.known:,} there already, {done.characters:,} characters")
    ran = await runner_of(shelf.knowledge, shelf.service, at_once=True).run()
    items = (await shelf.service.storage.tally()).items
    print(f"  {ran.done.get('pages', 0)} pages written; {items:,} items in all")


async def show_topics(shelf: Shelf, topics: Sequence[Topic], *, is_ours: bool) -> int:
    """Print which topics there are, and the page of one; return 0 if there is enough of both."""
    title("Topics")
    for topic in sorted(topics, key=lambda each: -len(each.item_ids)):
        print(f"  {topic.name:<24}{len(topic.item_ids):>4} items")
    print(f"  {'on no page':<24}{await count_unfiled(shelf.service, topics):>4} items")
    if not topics:
        print("  No page: nothing is spoken of five times.")
        return 0
    by_size = sorted(topics, key=lambda each: len(each.item_ids))
    chosen = next((topic for topic in topics if is_ours and topic.name == SHOWN), by_size[-1])
    title(f"The page topics/{chosen.name}.md")
    print(textwrap.indent(await shelf.pages.get_text(chosen), "  "))
    found = [await resolved(shelf, topic) for topic in topics]
    notes, wrong = sum(right + off for right, off in found), sum(off for _, off in found)
    print(f"  {notes:,} footnotes on all pages; {wrong:,} do not lead to the very words.")
    return int(wrong > 0 or (is_ours and (len(topics) < _LEAST_PAGES or notes < _LEAST_NOTES)))


async def resolved(shelf: Shelf, topic: Topic) -> tuple[int, int]:
    """Return how many footnotes of a page lead to the words of their line, and how many do not."""
    right = wrong = 0
    for claim in parse(await shelf.pages.get_text(topic)).claims:
        for note in claim.notes:
            passage = await shelf.manager.resource_layer.passage(note.source)
            words = "" if passage is None else " ".join(passage.text[note.start : note.end].split())
            is_right = bool(words) and words in " ".join((note.quote or claim.text).split())
            right, wrong = right + is_right, wrong + (not is_right)
    return right, wrong


async def ask(shelf: Shelf, question: str, expected: str) -> int:
    """Print what recall answers; return 0 if the expected words are among it."""
    title(question)
    found = await shelf.manager.retrieve(question, RetrievalMode.RAG, k=3)
    answer = await tools.render_recall(shelf.manager, found, question, "rag")
    print(textwrap.indent(answer, "  "))
    return int(expected not in answer)


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    sys.exit(main())
