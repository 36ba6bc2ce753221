"""Topics that earlier versions made of names in items, and that are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.pages.subjects import ENTITY, HIDDEN
from agent_memory.knowledge.topics.saves import TopicFiles
from agent_memory.models import TOPIC, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agent_memory.models import Record

TOPICS_FILE: Final = TOPIC.journal


def is_hidden(topic: Topic, files: TopicFiles) -> bool:
    """Return True if an earlier version made a topic of names in items, and no person edited its page."""
    if topic.source.detail != ENTITY:
        return topic.source.detail == HIDDEN
    return not topic.edited_by and not files.kept(topic.name).is_edited


def of_hidden_topics(records: Iterable[Record], folder: Path) -> Iterator[Concern]:
    """Yield how many of some records are hidden topics; `folder` has the pages."""
    files = TopicFiles(folder)
    hidden = sorted(record.name for record in records if isinstance(record, Topic) and is_hidden(record, files))
    if hidden:
        verb = "is" if len(hidden) == 1 else "are"
        yield Concern(
            "topics_hidden",
            f"{counted(len(hidden), 'topic')} of an earlier version {verb} hidden: rules made them of words in items.",
            "Run `agent-memory topic NAME --declare TEXT` to show one again.",
            details=few(hidden),
        )
