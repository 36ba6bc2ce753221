"""Checks of the files of knowledge; loaded when one exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.doctor.reading import JournalReading
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.entities.merges import count_guesses
from agent_memory.knowledge.inspection import TALKS_FILE, of_speakers, of_topics
from agent_memory.knowledge.pages.subjects import list_hidden
from agent_memory.knowledge.topics.page_files import TopicFiles
from agent_memory.memory.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.care.doctor.context import Case


def examine_guesses(case: Case) -> Iterator[Concern]:
    """Count entities and relations that removed rules guessed."""
    entities, relations = count_guesses(case.journal.iter_records())
    if entities or relations:
        numbers = f"{counted(entities, 'entity', 'entities')} and {counted(relations, 'relation')}"
        yield Concern("entities_guessed", f"{numbers} that rules of an earlier version guessed are hidden.")


def examine_topics(case: Case) -> Iterator[Concern]:
    """Count topics that removed rules made of names."""
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
    kinds = tuple(kind for kind in KINDS if kind.journal == TALKS_FILE)
    talks = JournalReading(case.folder.path / TALKS_FILE, case.folder.agent_id, kinds).load().values()
    yield from of_speakers(talks, case.journal.iter_records())


def examine_pages(case: Case) -> Iterator[Concern]:
    """Yield concerns about entries among the pages."""
    yield from of_topics(case.folder.topics)
