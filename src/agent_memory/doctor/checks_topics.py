"""Check the topics of earlier versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.pages.hidden_topics import TOPICS_FILE, of_hidden_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.files.concerns import Concern


def examine_topics(case: Case) -> Iterator[Concern]:
    """Yield the number of hidden topics in the journal of topics."""
    if case.path.name == TOPICS_FILE:
        yield from of_hidden_topics(case.journal.load().values(), case.folder.topics)
