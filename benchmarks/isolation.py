"""Check that no group or agent is shown the content of another.

    python -m benchmarks.isolation [--queries 10000] [--turns 12] [--embedder none|local] [--seed 0] [--json]

Some agents each serve sessions of several tenants. Each group gives a talk and a document and declares a topic; some
belongs to nobody. Each text, title, description and name has a mark that no other group has. Background work draws
items, entities and relations, summarises and writes pages, and a part is sealed. Then managers that are bound to a
group, or to nobody's, are asked at random, and whatever they answer, errors too, is looked through for marks of others;
counts are compared with those of a full read.

Ends with 1 if a mark of another group was told, or a count was wrong.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, CategoryNotFoundError
from agent_memory.ingestion import (
    ConversationSummarizer,
    Entities,
    EntityDeduplicator,
    Episode,
    MemoryIngestionConfig,
    MetaConfig,
    SummarizationConfig,
    WindowConfig,
    runner_of,
)
from agent_memory.knowledge import MemoryManager, tools
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import EPISODE, MEMORY, RESOURCE, Entity, sees
from agent_memory.settings import ServiceSettings
from agent_memory.store.segment_builder import seal_up
from benchmarks.harness import build_parser, open_scratch, print_report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from agent_memory.memory import Caller, MemoryService

AGENTS: Final = ("north", "south")
GROUPS: Final = ("", *(f"{tenant}:s{session}" for tenant in ("acme", "beta", "gamma") for session in range(2)))
SMALL: Final = SummarizationConfig(
    window=WindowConfig(turns_per_summary=4), meta=MetaConfig(summaries_per_meta=2, enabled_at_turn_count=8)
)
_MARK: Final = re.compile(r"zq[a-p]{8}x", re.IGNORECASE)
_ASKED: Final = ("shelf tea boxes", "who moved to the harbour", "salary", "room of the house", "what about {mark}")


@dataclass(slots=True)
class LeakReport:
    """Answers and leaks.

    Attributes:
        asked: How often, by way.
        told: How many marks of the own group or of nobody's were told, by way: an answer without any shows nothing.
        cross: Marks of others that were told, and counts that were wrong, each a sentence.
    """

    asked: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    cross: list[str] = field(default_factory=list)


def mark_of(agent: str, group: str) -> str:
    """Return the word in all texts of a group."""
    made = random.Random(f"{agent} {group}")
    return "zq" + "".join(made.choice("abcdefghijklmnop") for _ in range(8)) + "x"


OWNERS: Final = {mark_of(agent, group): (agent, group) for agent in AGENTS for group in GROUPS}


class AskedSession:
    """One agent, asked by a session of one group.

    Args:
        service, knowledge: The agent's.
        agent, group: Whose.
        caller: The session.
        others: Ids of what other groups gave.
    """

    def __init__(
        self, service: MemoryService, knowledge: Knowledge, agent: str, caller: Caller, others: Sequence[str]
    ) -> None:
        self.service, self.knowledge, self.agent, self.caller = service, knowledge, agent, caller
        self.group = caller.group or ""
        self.manager = MemoryManager(service=service, caller=caller)
        self._others = others

    async def recall(self, made: random.Random) -> str:
        """Recall, as the tool does."""
        mode, query = made.choice(["rag", "hybrid"]), self._query(made)
        found = await self.manager.retrieve(query, mode, 20)
        return await tools.render_recall(self.manager, found, "", mode)

    async def search(self, made: random.Random) -> str:
        """Search notes and items, with an explanation of what was left out."""
        filters = {"include_items": True}
        found = await self.service.search(self._query(made), 20, filters, explain=True, caller=self.caller)
        left_out = [await self.service.storage.get(each["id"]) for each in found.results.rejected]
        return "\n".join(map(str, [*found, *left_out]))

    async def topics(self, _: random.Random) -> str:
        """List topics with pages and items, as programs get them."""
        listed = await tools.render_categories(self.manager)
        return "\n".join([listed, *map(str, await self.manager.list_categories())])

    async def page(self, made: random.Random) -> str:
        """Read the page of a topic, of another group's name too."""
        name = f"shelves_{mark_of(self.agent, made.choice(GROUPS))}"
        try:
            return await tools.render_page(self.manager, made.choice([name, *(await self._names())]))
        except CategoryNotFoundError as error:
            return tools.not_found(error).replace(name, "", 1)  # as it was asked for

    async def resources(self, made: random.Random) -> str:
        """List documents and conversations, and search them."""
        layer = self.manager.resource_layer
        return str([await layer.list_recent(99), await layer.search(self._query(made))])

    async def by_id(self, made: random.Random) -> str:
        """Name something of another group."""
        one = made.choice(self._others)
        if not one.startswith("mem-"):
            return str([await self.manager.resource_layer.get(one), await self.manager.resource_layer.passage(one)])
        ways: list[Callable[[], Awaitable[Any]]] = [
            lambda: self.service.open(one, self.caller),
            lambda: self.service.search(one, caller=self.caller),
            lambda: self.service.update(one, {"tags": ["seen"]}, self.caller),
            lambda: self.service.forget(one, self.caller),
            lambda: self.manager.item_layer.get(one),
        ]
        return str(await made.choice(ways)())

    async def preview(self, made: random.Random) -> str:
        """List the candidates of a request to forget."""
        found = await self.service.searcher.find_candidates(f"everything about {self._query(made)}", self.caller)
        return str(found.listed)

    async def suspects(self, _: random.Random) -> str:
        """List pairs."""
        return str(await self.service.suspects(self.caller))

    async def entities(self, made: random.Random) -> str:
        """List entities, find another group's name, a timeline and a duplicate."""
        group = self.group or ""
        known, mark = Entities(self.knowledge, group), mark_of(self.agent, made.choice(GROUPS))
        every = await known.all()
        told = [str(every), str(await known.timeline(made.choice(every)))]
        for name in (f"Tobias {mark.title()}", f"db-{mark}.example.org", made.choice(self._others)):
            try:
                told.append(str(await known.get(name)))
            except AgentMemoryError as error:
                told.append(str(error).replace(name, "", 1))
        if group:
            new = Entity(agent_id=self.agent, name=f"Tobias {mark.title()}", entity_type="person", group=group)
            told.append(str(await EntityDeduplicator(self.knowledge).find_duplicate(new, group)))
        return "\n".join(told)

    async def summaries(self, made: random.Random) -> str:
        """Make due summaries, and those of turns of any group."""
        group, summarizer = self.group or "nobody:0", ConversationSummarizer(self.knowledge, SMALL)
        every = [*await self.knowledge.episodes.valid(), *await self.knowledge.summaries.valid()]
        whose = made.choice([self.group, made.choice(GROUPS)])
        own = [each.id for each in every if each.belongs_to == whose]
        some = [Episode(one, group, "") for one in made.sample(own, 3)]
        told = [str(await summarizer.check_and_summarize_if_needed(group))]
        for way in (summarizer.summarize_window, summarizer.create_meta_summary):
            try:
                told.append(str(await way(some, group)))
            except AgentMemoryError as error:
                told.append(f"{error.message} {error.recovery}")
        return "\n".join(told)

    def _query(self, made: random.Random) -> str:
        return made.choice(_ASKED).format(mark=mark_of(self.agent, made.choice(GROUPS)))

    async def _names(self) -> list[str]:
        return [topic.name for topic in await self.manager.category_layer.list_all()]


WAYS: Final = {
    AskedSession.recall: 34,
    AskedSession.search: 24,
    AskedSession.by_id: 12,
    AskedSession.resources: 5,
    AskedSession.preview: 3,
    AskedSession.suspects: 2,
    AskedSession.topics: 3,
    AskedSession.page: 5,
    AskedSession.entities: 8,
    AskedSession.summaries: 4,
}
"""How to ask, and how often among a hundred."""


async def give(service: MemoryService, knowledge: Knowledge, group: str, turns: int) -> None:
    """Add a talk, a document and a topic of a group."""
    mark, ingest = mark_of(knowledge.agent_id, group), Ingest(knowledge)
    begun = await ingest.conversation(f"talk {mark}", title=f"Talk of {mark}", group=group)
    for order in range(turns):
        text = f"The shelf {order} of {mark.title()} holds {order * 7} boxes of tea and my salary list in Lyon."
        if order % 3 == 0:
            text = f"Tobias {mark.title()} works at {mark.title()} GmbH and owns db-{mark}.example.org. " + text
        turn = ReceivedTurn(text, speaker=("Ada", "Bob")[order % 2])
        await ingest.turn(turn, conversation=begun.record.id, order=order, group=group)
    lines = "\n".join(f"Room {number} of the house {mark} has {number + 2} windows." for number in range(turns))
    await ingest.resource(f"# House {mark}\n{lines}", group=group)
    manager = MemoryManager(service=service, caller=replace(NOBODY, group=group))
    await manager.create_category(f"shelves_{mark}", f"Shelves, boxes and tea of {mark}.")
    await manager.create_category(f"house_{mark}", f"Rooms and windows of the house {mark}.")
    await manager.remember(f"The harbour master of {mark} moved to Lyon.", f"shelves_{mark}")
    await manager.remember(f"The harbour master of {mark} moved to Lyon.", "harbour")
    await manager.close()


async def opened(agent: str, settings: ServiceSettings, turns: int) -> tuple[MemoryService, Knowledge]:
    """Return an agent with texts of all groups, half of them sealed."""
    for number, groups in enumerate((GROUPS[: len(GROUPS) // 2], GROUPS[len(GROUPS) // 2 :])):
        service, knowledge = open_service(agent, settings), Knowledge(agent, settings)
        for group in groups:
            await give(service, knowledge, group, turns)
        config = MemoryIngestionConfig(summarization=SMALL)
        await runner_of(knowledge, service, config=config, at_once=True).run()
        if number:
            return service, knowledge
        await service.storage.prepare(None)
        folder = knowledge.folder
        await knowledge.close()
        await service.close()
        for kind in (MEMORY, RESOURCE, EPISODE):
            seal_up(folder, kind, None, least=1)
    raise AssertionError("two parts were given")


async def asking_of(agent: str, service: MemoryService, knowledge: Knowledge) -> list[AskedSession]:
    """Return a session of each group for an agent."""
    items = await service.searcher.list_all()
    given = [
        *[resource async for resource in knowledge.resources.iter_all()],
        *[episode async for episode in knowledge.episodes.iter_all()],
    ]
    found = []
    for group in GROUPS:
        others = [item.id for item in [*items, *given] if not sees(group, item.facets)]
        found.append(AskedSession(service, knowledge, agent, replace(NOBODY, group=group), others))
    return found


async def miscounted(asked: AskedSession) -> list[str]:
    """Return the counts of a session that differ from a full read."""
    items = [
        memory
        for memory in await asked.service.searcher.list_all()
        if memory.is_item and sees(asked.group, memory.facets)
    ]
    status = (await asked.service.status(asked.caller)).counts.get("items", 0)
    wrong = [] if status == len(items) else [f"{asked.group}: {status} items are told in the status, {len(items)} seen"]
    told = await asked.manager.category_layer.count_items()
    for topic in await asked.manager.category_layer.list_all():
        on_it = [item for item in items if item.id in topic.item_ids or item.topic == topic.name]
        if told[topic.name] != len(on_it):
            wrong.append(f"{asked.group}: {told[topic.name]} items of {topic.name}, {len(on_it)} seen")
    return wrong


def others_in(answer: str, agent: str, group: str) -> list[str]:
    """Return the owners of foreign marks in an answer."""
    owners = [OWNERS[mark.lower()] for mark in _MARK.findall(answer)]
    return sorted({f"{who} {whose}" for who, whose in owners if who != agent or whose not in {"", group}})


async def measure(root: Path, queries: int, turns: int, embedder: str, seed: int) -> LeakReport:
    """Build, ask, and look."""
    report, made = LeakReport(), random.Random(seed)
    settings = ServiceSettings(storage_root=str(root), embedder=embedder)
    agents = {agent: await opened(agent, settings, turns) for agent in AGENTS}
    everyone = [each for agent, open_ in agents.items() for each in await asking_of(agent, *open_)]
    for asked in everyone:
        report.cross += await miscounted(asked)
    for way in made.choices([*WAYS], [*WAYS.values()], k=queries):
        asked = made.choice(everyone)
        try:
            answer = await way(asked, made)
        except AgentMemoryError as error:
            answer = f"{error.message} {error.recovery}"
        report.asked[way.__name__] += 1
        report.told[way.__name__] += len(_MARK.findall(answer))
        whose = asked.group or "nobody"
        others = others_in(answer, asked.agent, asked.group)
        report.cross += [f"{way.__name__} of {asked.agent} {whose} told of {each}" for each in others]
    for asked in everyone:
        await asked.manager.close()
    for service, knowledge in agents.values():
        await knowledge.close()
        await service.close()
    return report


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, and print what was seen."""
    parser = build_parser("isolation", __doc__, "--embedder", "--seed", "--json", embedder="none")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=12, help="of each group's talk")
    chosen = parser.parse_args(argv)
    with open_scratch() as folder:
        report = asyncio.run(measure(folder, chosen.queries, chosen.turns, chosen.embedder, chosen.seed))
    print_report({"asked": report.asked, "told": report.told, "cross": report.cross}, as_json=chosen.json)
    return bool(report.cross)


if __name__ == "__main__":
    raise SystemExit(main())
