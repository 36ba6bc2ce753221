"""Check the topics that earlier versions made of names in items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.pages.pages import is_hidden
from agent_memory.knowledge.topics.saves import TopicFiles
from agent_memory.models import TOPIC, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_topics(case: Case) -> Iterator[Concern]:
    """Yield how many topics are hidden, if this is the journal of topics."""
    if case.path.name != TOPIC.journal:
        return
    files = TopicFiles(case.folder.topics)
    topics = [record for record in case.journal.load().values() if isinstance(record, Topic)]
    hidden = sorted(topic.name for topic in topics if is_hidden(topic, files))
    if hidden:
        verb = "is" if len(hidden) == 1 else "are"
        yield Concern(
            "topics_hidden",
            f"{counted(len(hidden), 'topic')} of an earlier version {verb} hidden: rules made them of words in items.",
            "Run `agent-memory topic NAME --declare TEXT` to show one again.",
            details=few(hidden),
        )
