"""Subjects of pages: documents, conversations, people who speak."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.intake.drafts import UNKNOWN
from agent_memory.knowledge.passages.items import is_passage, list_source_ids
from agent_memory.knowledge.passages.sections import SEPARATOR
from agent_memory.memory.views import describe_day
from agent_memory.models import DIGEST, Topic
from agent_memory.models.knowledge import DERIVED_TOPICS
from agent_memory.models.memory import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.knowledge.pages.page_files import TopicFiles
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Episode, Memory, Record, Resource

ENTITY: Final = "entity"
"""`source.detail` of a topic of names in items, which earlier versions made."""
HIDDEN: Final = "hidden_entity"
KEPT: Final = "kept_entity"
"""`source.detail` of such a topic since this version: hidden, or shown because a person edited or pinned something."""
DOCUMENT: Final = "document"
TALK: Final = "conversation"
PERSON: Final = "person"
KEY: Final = "of"
"""Key of a topic's metadata that has the ID of its document or conversation, or the name of the speaker."""
FILE: Final = "file"
"""Key of a topic's metadata that has the name of its file."""
LEAST_SAID: Final = 5
"""Items that a person said before there is a page."""
_BY_MODEL: Final = "model"
"""`source.detail` of items that a model drew for earlier versions."""
_PRESENT: Final = frozenset({PASSAGE, DIGEST, _BY_MODEL})
_LEAST_TURNS: Final = 3
_NO_PAGE: Final = "feedback"
"""Type of resources that are single notes."""
_MOST_NAMED: Final = 6
_MOST_DESCRIBED: Final = 500
_MOST_SUFFIX: Final = 6
_PLAIN: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME_CHARS: Final = 60


@dataclass(slots=True)
class PageSubject:
    """A document, conversation or person with the items of its page.

    Attributes:
        kind: `DOCUMENT`, `TALK` or `PERSON`.
        key: ID of the first version of the document or of the conversation, or name of the person.
        label: Name of the file, title of the conversation, or name of the person.
        group: Group of the document or conversation.
        members: Items, oldest first.
        speakers: Names and roles of who speaks, in order.
        turns: IDs of the turns of a conversation.
        untracked_turns: Number of turns that its items quote and that have no records.
        file: Name of the file of the document or conversation, empty without a file.
    """

    kind: str
    key: str
    label: str
    group: str = ""
    members: list[Memory] = field(default_factory=list)
    speakers: dict[str, None] = field(default_factory=dict)
    turns: set[str] = field(default_factory=set)
    untracked_turns: int = 0
    file: str = ""

    @property
    def has_page(self) -> bool:
        """True if there is enough for a page."""
        if self.kind == TALK:
            return len(self.turns) + self.untracked_turns >= _LEAST_TURNS
        return self.kind == DOCUMENT or len(self.members) >= LEAST_SAID

    @property
    def title(self) -> str:
        """Title: the heading above all passages of a document, else the label."""
        if self.kind == DOCUMENT:
            tops = {_read_path(item)[0] for item in self.members if item.metadata.get("heading")}
            if len(tops) == 1:
                return tops.pop()
        return self.stem or f"{self.kind.title()} {_get_days(self.members)}"

    @property
    def name(self) -> str:
        """Label for the topic name, with the kind before a date."""
        label = self.stem or self.title
        return f"{self.kind} {label}" if label[:1].isdigit() else label

    @property
    def stem(self) -> str:
        """Label without the suffix of a file name."""
        path = PurePath(self.label)
        is_file = self.kind != PERSON and 1 < len(path.suffix) <= _MOST_SUFFIX and path.suffix[1:].isalnum()
        return self.label[: -len(path.suffix)] if is_file else self.label

    @property
    def description(self) -> str:
        """Description of the page."""
        return describe(self.kind, self.title, self.members, [*self.speakers], self.file)


def build_name(title: str) -> str:
    """Return the topic name of a title, `project_tidewater`, or nothing."""
    from agent_memory.knowledge.entities.matching.normal_forms import fold_name  # its word lists are for names alone

    name = _PLAIN.sub("_", fold_name(title)).strip("_")[:_MAX_NAME_CHARS].strip("_")
    return name if name[:1].isalpha() else f"n_{name}"[:_MAX_NAME_CHARS].strip("_") if name else ""


def is_derived(topic: Topic) -> bool:
    """Return True if a topic was not declared."""
    return topic.source.detail in DERIVED_TOPICS


def is_legacy(topic: Topic) -> bool:
    """Return True if an earlier version made a topic of names."""
    return topic.source.detail in {ENTITY, HIDDEN, KEPT}


def is_hidden(topic: Topic, files: TopicFiles) -> bool:
    """Return True for a legacy topic, unless a person edited its page."""
    if topic.source.detail != ENTITY:
        return topic.source.detail == HIDDEN
    return not topic.edited_by and not files.get_files(topic.name).is_edited


def list_hidden(records: Iterable[Record], files: TopicFiles) -> list[str]:
    """Return the names of hidden topics."""
    return sorted(record.name for record in records if isinstance(record, Topic) and is_hidden(record, files))


def list_names(topic: Topic) -> set[str]:
    """Return the file name of a topic, casefolded, also without suffix."""
    file = str(topic.metadata.get(FILE, "")).casefold()
    return {file, PurePath(file).stem} - {""}


def _cut_description(text: str) -> str:
    """Return a description that fits into its record, cut between words."""
    return text if len(text) <= _MOST_DESCRIBED else f"{text[: _MOST_DESCRIBED - 2].rpartition(' ')[0].rstrip(',;')} …"


def describe(kind: str, title: str, members: Sequence[Memory], speakers: Sequence[str] = (), file: str = "") -> str:
    """Return a description: file, headings of a document, speakers of a conversation."""
    if kind == PERSON:
        return _cut_description(f"What {title} said, with the questions it answers.")
    days = _get_days(members)
    days = f"{days} in {file}" if file else days
    if kind == TALK:
        return _cut_description(f"Conversation {days} with {_join_names(speakers)}.")
    paths = [_read_path(item) for item in members if item.metadata.get("heading")]
    headings = dict.fromkeys(path[1] if len(path) > 1 and path[0] == title else path[0] for path in paths)
    headings.pop(title, None)
    listed = f": {', '.join(headings)}" if headings else ""
    return _cut_description(f"Document {days}{listed}.")


def get_speaker_name(item: Memory) -> str:
    """Return the name of the speaker of an item, or nothing."""
    name = str(item.metadata.get("speaker", ""))
    return name if name and f"\n{name}: " in f"\n{item.content}" else ""


@dataclass(frozen=True, slots=True)
class ItemSources:
    """Passages and statements with their sources.

    Attributes:
        items: Passages and statements, oldest first.
        turns: Turns by their IDs.
        resources: Current documents and conversations by their IDs.
        first: ID of the first version of each.
    """

    items: Sequence[Memory]
    turns: Mapping[str, Episode]
    resources: Mapping[str, Resource]
    first: Mapping[str, str]


async def load_sources(knowledge: Knowledge, memories: Iterable[Memory]) -> ItemSources:
    """Return the passages and statements among memories with their sources.

    Raises:
        StorageError: The sources cannot be read.
    """
    drawn = [memory for memory in memories if memory.is_item]
    cut = {source for item in drawn if is_passage(item) for source in list_source_ids(item)}
    # Items of earlier versions are read where their source has no passage, which would say the same.
    items = [item for item in drawn if item.source.detail in _PRESENT or cut.isdisjoint(list_source_ids(item))]
    sources = {source for item in items for source in list_source_ids(item)}
    turns, resources = await knowledge.load_sources(sources)
    first = {resource.id: (await knowledge.list_versions(resource))[-1].id for resource in resources.values()}
    return ItemSources(items, turns, resources, first)


def find_subjects(sources: ItemSources) -> list[PageSubject]:
    """Return the documents, conversations and people of items."""
    subjects: dict[tuple[str, str], PageSubject] = {}
    for item in sources.items:
        for source in reversed(list_source_ids(item)):  # a question precedes its answer
            turn = sources.turns.get(source)
            resource = sources.resources.get((turn.conversation or "") if turn is not None else source)
            if resource is not None and resource.resource_type != _NO_PAGE:
                _add_item(subjects, item, resource, sources.first[resource.id], turn)
        if name := get_speaker_name(item):
            subjects.setdefault((PERSON, name), PageSubject(PERSON, name, name)).members.append(item)
    with_page = [subject for subject in subjects.values() if subject.has_page]
    return sorted(with_page, key=lambda subject: (DOCUMENT, TALK, PERSON).index(subject.kind))


def _add_item(
    subjects: dict[tuple[str, str], PageSubject], item: Memory, resource: Resource, key: str, turn: Episode | None
) -> None:
    """Add an item to its document or conversation."""
    kind = TALK if resource.resource_type == "conversation" else DOCUMENT
    new = PageSubject(kind, key, resource.title, resource.group, file=resource.source.detail or "")
    subject = subjects.setdefault((kind, key), new)
    is_new = item.id not in {member.id for member in subject.members[-1:]}
    if is_new:
        subject.members.append(item)
    if turn is not None:
        subject.turns.add(turn.id)
        subject.speakers.setdefault(
            turn.speaker or ("an unknown speaker" if turn.role == UNKNOWN else f"the {turn.role}")
        )
    elif name := get_speaker_name(item):
        if is_new:  # an answer is quoted with its question
            subject.untracked_turns += 1 if item.content.startswith(f"{name}: ") else 2
        subject.speakers.setdefault(name)


def _read_path(item: Memory) -> list[str]:
    return str(item.metadata.get("heading", "")).split(SEPARATOR)


def _get_days(members: Sequence[Memory]) -> str:
    """Return the days of items, or the time of their file."""
    days = sorted({describe_day(item, item.moment) for item in members})
    days = [day for day in days if not day.startswith("file")] or days
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return f"from a {span}" if span.startswith("file") else f"of {span}"


def _join_names(names: Sequence[str]) -> str:
    shown = [*names[:_MOST_NAMED], *([f"{len(names) - _MOST_NAMED} others"] if len(names) > _MOST_NAMED else [])]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
