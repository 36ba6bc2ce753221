"""The part of an export that is no memories: what an agent was given, and its topics."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.formats import Format, ImportedLine, encode_entry
from agent_memory.cli.knowledge import opened_knowledge
from agent_memory.cli.running import Run
from agent_memory.files.wording import counted
from agent_memory.ingestion.working import runner_of
from agent_memory.models import ARCHIVED, CANDIDATE, ENTITY, EPISODE, RELATION, RESOURCE, SUMMARY, TOPIC

if TYPE_CHECKING:
    from agent_memory.knowledge.intake.carrying import Brought

_WRITTEN_AT_ONCE: Final = 200
_WORDS: Final = {
    RESOURCE.name: ("resource", "resources"),
    EPISODE.name: ("turn", "turns"),
    TOPIC.name: ("topic", "topics"),
    ENTITY.name: ("entity", "entities"),
    RELATION.name: ("relation", "relations"),
    SUMMARY.name: ("summary", "summaries"),
    ARCHIVED.name: ("archived memory", "archived memories"),
    CANDIDATE.name: ("candidate", "candidates"),
}
"""What is told; where entities are named comes with them."""


def was_given(run: Run) -> bool:
    """Return True if the agent has anything but memories."""
    if run.service.settings.backend == "server":
        return False
    folder = run.root / run.service.agent_id
    return any((folder / kind.journal).exists() for kind in (RESOURCE, EPISODE))


async def write_given(run: Run, form: Format, write: Callable[[str], object]) -> Counter[str]:
    """Write all that the agent was given, and its topics; return how many there are of each kind."""
    from agent_memory.knowledge.intake.carrying import entries_of

    counts, texts = Counter[str](), list[str]()
    if not was_given(run):
        return counts
    async with opened_knowledge(run) as knowledge:
        async for entry in entries_of(knowledge, await run.service.admin.derived.forgotten()):
            counts[entry["kind"]] += 1
            texts.append(encode_entry(entry, form))
            if len(texts) == _WRITTEN_AT_ONCE:
                write("".join(texts))
                texts.clear()
    write("".join(texts))
    return counts


async def bring_given(run: Run, records: Sequence[ImportedLine], *, trusted: bool, dry_run: bool) -> "Brought | None":
    """Store what a file says that an agent was given; None where it says nothing of that."""
    from agent_memory.knowledge.intake.carrying import bring

    entries = [(record.line, record.given) for record in records if record.given is not None]
    if not entries:
        return None
    async with opened_knowledge(run) as knowledge:
        return await bring(knowledge, entries, trusted=trusted, dry_run=dry_run)


async def work(run: Run) -> None:
    """Draw and write what is made of it: items that came with it are not made again."""
    async with opened_knowledge(run) as knowledge:
        await runner_of(knowledge, run.service, run.caller, at_once=True).run()


def said_of(counts: Counter[str]) -> str:
    """Return how many there are of each kind, for people; empty where there is nothing."""
    named = [counted(counts[kind], *words) for kind, words in _WORDS.items() if counts[kind]]
    return ", ".join(named)


def document_of(done: "Brought") -> dict[str, Any]:
    """Return what became of it, for JSON."""
    return {
        name: {
            "stored": done.stored[kind],
            "present": done.present[kind],
            **({"purged": done.purged[kind]} if done.purged[kind] else {}),
        }
        for kind, (name, _) in _WORDS.items()
        if kind not in {ARCHIVED.name, CANDIDATE.name}
    }
