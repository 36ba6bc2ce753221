"""Check records of earlier versions that the present rules would not make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.conflicts import find_conflict
from agent_memory.doctor.reading import Reading
from agent_memory.entities.removed_rules import ENTITIES_FILE, count_guesses
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.intake.speakers import TALKS_FILE, TURNS_FILE, of_speakers
from agent_memory.knowledge.pages.subjects import TOPICS_FILE, list_hidden
from agent_memory.knowledge.topics.saves import TopicFiles
from agent_memory.models import may_conflict
from agent_memory.service.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_conflicts(case: Case) -> Iterator[Concern]:
    """Count undecided pairs of valid memories that do not conflict."""
    replaced = case.survey.replaced
    pairs = [
        (newer_id, older_id)
        for newer_id, older_ids in case.survey.undecided.items()
        for older_id in older_ids
        if newer_id not in replaced and older_id not in replaced
    ]
    if not pairs:
        return
    memories = case.journal.load({memory_id for pair in pairs for memory_id in pair})
    hidden = 0
    for newer, older in ((memories.get(newer_id), memories.get(older_id)) for newer_id, older_id in pairs):
        if newer is not None and older is not None:
            hidden += not may_conflict(newer, older) or find_conflict(newer.content, older.content) is None
    if hidden:
        yield Concern(
            "conflicts_hidden",
            f"{counted(hidden, 'undecided pair is', 'undecided pairs are')} hidden: by the present rule the memories "
            "do not conflict.",
        )


def examine_guesses(case: Case) -> Iterator[Concern]:
    """Count entities and relations that removed rules guessed."""
    if case.path.name != ENTITIES_FILE:
        return
    entities, relations = count_guesses(case.journal.iter_records())
    if entities or relations:
        numbers = f"{counted(entities, 'entity', 'entities')} and {counted(relations, 'relation')}"
        yield Concern("entities_guessed", f"{numbers} that rules of an earlier version guessed are hidden.")


def examine_topics(case: Case) -> Iterator[Concern]:
    """Count topics that removed rules made of names."""
    if case.path.name != TOPICS_FILE:
        return
    hidden = list_hidden(case.journal.load().values(), TopicFiles(case.folder.topics))
    if hidden:
        yield Concern(
            "topics_hidden",
            f"{counted(len(hidden), 'topic of an earlier version is', 'topics of an earlier version are')} hidden: "
            "rules made them of words in items.",
            "Run `agent-memory topic NAME --declare TEXT` to show one again.",
            details=few(hidden),
        )


def examine_speakers(case: Case) -> Iterator[Concern]:
    """Yield concerns about turns with a guessed speaker."""
    if case.path.name == TURNS_FILE:
        kinds = tuple(kind for kind in KINDS if kind.journal == TALKS_FILE)
        talks = Reading(case.folder.path / TALKS_FILE, case.folder.agent_id, kinds).load().values()
        yield from of_speakers(talks, case.journal.iter_records())
