"""Passages of turns and documents as fields of memories.

A turn is cut with the question that it answers. The ID of an item is made of its text, its group, its trust and, for
talk, its day: the same passage of two sources is one item.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.typed_text import get_typed_part
from agent_memory.knowledge.intake.document_index import PATH
from agent_memory.knowledge.intake.drafts import PERSON, UNKNOWN
from agent_memory.knowledge.intake.turns import find_past_day
from agent_memory.knowledge.passages.sections import LINE, MOST_CHARS, SEPARATOR, TextPassage, cut_passages, leave_out
from agent_memory.language.sentences import find_breaks, names_time
from agent_memory.language.speakers import parse_turn
from agent_memory.language.words import fold
from agent_memory.memory.trust import lowest
from agent_memory.models import DIGEST, EPISODE, MEMORY, TRUST_ORDER, Episode, derived_id, is_as_stated, to_text
from agent_memory.models.clock import FILE_TIME, as_utc, get_saying_metadata
from agent_memory.models.memory import ALSO, FROM, PASSAGE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory, Resource, Trust

STAGE: Final = "items"
REPLACES: Final = "answers"
"""Key of the metadata that has the turn of which an exchange holds all words."""
_SAID: Final = frozenset({"user", "assistant", PERSON, UNKNOWN})
"""Roles whose turns are talk; what tools answer and systems say is kept and not drawn from."""
_SAYS_NOTHING: Final = frozenset("a an the really just very ein eine der das".split())  # noqa: SIM905
BEFORE: Final = 4
"""Turns before a turn among which the answered one is searched."""
_AROUND: Final = ".,;:!?\"'()[]{}\u2026\u2019\u201c\u201d\u2013\u2014*_`"
MOST_LINKS: Final = 90
"""Most sources of one item, of the 100 links of a record; further ones belong to another item with the same text."""
SOURCE_DELETED: Final = "source_deleted"
"""Name of the link to a deleted resource."""
PART: Final = "part"
"""Key of the metadata with the number of such a further item, from 2."""


def is_talk(record: Episode) -> bool:
    """Return True for a turn of people or of an agent."""
    return record.role in _SAID and record.content_type == "message"


def is_passage(item: Memory) -> bool:
    """Return True if an item is a passage, rather than a statement."""
    return item.is_item and item.source.detail == PASSAGE


def is_drawn_from(record: Resource | Episode) -> bool:
    """Return True for talk and documents, not tool answers or titles."""
    return (
        is_talk(record) if isinstance(record, Episode) else record.resource_type != "conversation" or record.chars > 0
    )


def drawn_from(
    record: Resource | Episode, text: str, before: Sequence[Episode] = (), forgotten: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the passages of a record as fields of items.

    Args:
        record: Document or turn.
        text: Whole text of the record.
        before: Few turns before it, oldest first.
        forgotten: Words of forgotten passages, which a document does not bring back.
    """
    if not is_drawn_from(record):
        return []
    if isinstance(record, Episode):
        items = _cut_episode(record, text, before)
    elif record.resource_type == "conversation":
        items = _cut_conversation(record, text)
    else:
        path = str(record.metadata.get(PATH, ""))
        cut = cut_passages(text, is_settings=record.resource_type == "config")
        folded = fold(text) if forgotten else ""
        unwanted = [words for words in forgotten if fold(words) in folded]
        passages = [rest for passage in cut for rest in leave_out(passage, text, unwanted)] if unwanted else cut
        items = [_passage_item(record, passage, tags=list(record.tags), path=path) for passage in passages]
    return list({item["id"]: item for item in items}.values())


def leave_answered(items: Sequence[dict[str, Any]], stored: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return items without the questions whose exchange is among them.

    Args:
        items: Passages of several records.
        stored: IDs of turns whose exchange is stored.
    """
    answered = {*stored, *(item["metadata"].get(REPLACES) for item in items)} - {None}
    return [item for item in items if item["links"][0]["id"] not in answered or item["metadata"].get(REPLACES)]


def _cut_episode(record: Episode, text: str, before: Sequence[Episode]) -> list[dict[str, Any]]:
    """Return the passages of a turn, pasted text with low trust."""
    earlier = [_make_spoken(turn, turn.content) for turn in before]
    trusts = {turn.id: turn.trust for turn in before}
    items: list[dict[str, Any]] = []
    for origin, start, end in _split_origins(record, text):
        exchange = cut_turn(replace(_make_spoken(record, text[start:end]), start=start), earlier)
        answered = exchange.answered
        trust = origin.trust if answered is None else lowest(origin.trust, trusts[answered.id])
        replaced = ""
        if answered is not None and exchange.is_whole and (asks(answered.text) or trusts[answered.id] == origin.trust):
            replaced = answered.id
        more = {"speaker": exchange.speaker, REPLACES: replaced}
        own_items = [_passage_item(origin, passage, trust, **more) for passage in exchange.passages]
        items += own_items if answered is None else [_with_asked(item, answered) for item in own_items]
    return items


def _with_asked(item: dict[str, Any], asked: SpokenTurn) -> dict[str, Any]:
    """Return an exchange with the answered turn as a second source."""
    links = [*item["links"], {"rel": FROM, "id": asked.id}]
    return item | {"links": links, "metadata": {**item["metadata"], ALSO: {asked.id: [0, len(asked.text)]}}}


def _cut_conversation(record: Resource, text: str) -> list[dict[str, Any]]:
    """Return the passages of a conversation that is one text."""
    turns = split_turns(text)
    items: dict[int, list[dict[str, Any]]] = {}
    answers = set[int]()
    for place, turn in enumerate(turns):
        exchange = cut_turn(turn, turns[max(0, place - BEFORE) : place])
        if exchange.answered is not None and exchange.is_whole and exchange.answered.start not in answers:
            items.pop(exchange.answered.start, None)  # the exchange has its words
        if exchange.answered is not None:
            answers.add(turn.start)
        items[turn.start] = [_passage_item(record, passage, speaker=exchange.speaker) for passage in exchange.passages]
    return [item for turn_items in items.values() for item in turn_items]


def _passage_item(
    record: Resource | Episode,
    passage: TextPassage,
    trust: Trust | None = None,
    *,
    tags: Sequence[str] = (),
    **more: str,
) -> dict[str, Any]:
    """Return a passage as fields of an item."""
    metadata = {
        "at": [passage.start, passage.end],
        **{name: value for name, value in ({"heading": passage.heading} | more).items() if value},
    }
    item = make_item(record, passage.text, (passage.start, passage.end), PASSAGE, trust, metadata)
    headings = reversed(passage.heading.split(SEPARATOR))
    if day := next(filter(None, (find_past_day(heading, record.timestamp) for heading in headings)), None):
        item["observed_at"] = to_text(as_utc(day))
        item["metadata"].pop(FILE_TIME, None)
    return item | ({"tags": list(tags)} if tags else {})


def _make_spoken(turn: Episode, text: str) -> SpokenTurn:
    return SpokenTurn(text, turn.speaker or turn.role.title(), is_named=bool(turn.speaker), id=turn.id)


def _split_origins(record: Episode, text: str) -> list[tuple[Episode, int, int]]:
    """Return the typed and the pasted parts of a turn."""
    if record.role != "user" or record.source.kind not in {"user", "import"}:
        return [(record, 0, len(text))]
    pasted = record.model_copy(update={"trust": "low", "origin": "pasted"})
    if record.trust == "low" and record.source.kind == "user":
        return [(pasted, 0, len(text))]
    typed = frozenset(" ".join(line.split()) for line in get_typed_part(text).splitlines())
    parts: list[tuple[Episode, int, int]] = []
    for line in LINE.finditer(text):
        origin = record if " ".join(line[0].split()) in typed else pasted
        if not line[0].strip() and parts:
            origin = parts[-1][0]
        if parts and parts[-1][0] is origin:
            parts[-1] = (origin, parts[-1][1], line.end())
        else:
            parts.append((origin, line.start(), line.end()))
    return parts


def admit_item(
    item: dict[str, Any], never: Collection[str], purged: Mapping[str, float], moment: float
) -> dict[str, Any] | None:
    """Return an item under a free ID, or None if forgotten.

    Args:
        item: Passage of one source.
        never: IDs of forgotten and purged items, which count at this trust or above.
        purged: When items were purged, in seconds since 1970, by ID.
        moment: When the source was stored; an earlier purge does not count.
    """
    trusts = TRUST_ORDER[TRUST_ORDER.index(item["trust"]) :] if never else ()
    bases = [_make_id({**item, "trust": trust}) for trust in trusts]
    part: int | None = None
    while unwanted := {_part_id(base, part) for base in bases}.intersection(never):
        if any(purged.get(item_id, math.inf) >= moment for item_id in unwanted):
            return None
        part = (part or 1) + 1
    if part is None:
        return item
    return {**item, "id": _part_id(bases[0], part), "metadata": {**item["metadata"], PART: part}}


def make_item(
    record: Resource | Episode,
    content: str,
    place: tuple[int, int],
    rule: str,
    trust: Trust | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an item of a record as fields of a memory."""
    values: dict[str, Any] = {
        "content": content,
        "observed_at": to_text(record.moment),
        "source": {"kind": "extraction", "detail": rule},
        "trust": trust or record.trust,
        "links": [{"rel": FROM, "id": record.id}],
        "metadata": {**(metadata or {"at": [*place]})},
        "group": record.group,
    }
    if isinstance(record, Episode):
        values["metadata"].setdefault("speaker", get_speaker(record))
    values["metadata"] |= get_saying_metadata(record.metadata)
    values |= {"origin": record.origin} if record.origin else {}
    return {"id": _make_id(values), **values}


def get_speaker(record: Episode) -> str:
    """Return the name or role of the speaker of a turn."""
    if record.speaker:
        return record.speaker
    if record.role == "assistant" and record.source.kind == "assistant":
        return record.agent_id
    return "an unknown speaker" if record.role in {PERSON, UNKNOWN} else f"the {record.role}"


def is_as_drawn(item: Memory) -> bool:
    """Return True if an item has its original text, at any trust."""
    if item.source.detail == DIGEST:
        return is_as_stated(item)
    ids = {_own_id(item.model_copy(update={"trust": trust})) for trust in TRUST_ORDER}
    return item.id in ids or any(item.id == _first_id(source, item.content) for source in list_source_ids(item))


def list_source_ids(item: Memory) -> list[str]:
    """Return the ids of all that an item was drawn from."""
    return [link.id for link in item.links if link.rel == FROM]


def with_sources(item: Memory, addition: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return changes that add sources to an item, and the rest.

    Args:
        item: As it is stored.
        addition: As `join_items` returns it.

    Returns:
        No changes where it has them all; for each source without room an item, for `join_items`.
    """
    links, also = [link.model_dump() for link in item.links], _also(item.metadata)
    remaining: list[dict[str, Any]] = []
    for single in _each_source(addition):
        link = single["links"][0]
        if link["id"] in {known_link["id"] for known_link in links}:
            continue
        if len(links) >= MOST_LINKS:
            remaining.append(single)
            continue
        links.append(link)
        also[link["id"]] = single["metadata"]["at"]
    if len(links) == len(item.links):
        return {}, remaining
    return {"links": links, "metadata": {**item.metadata, ALSO: also}}, remaining


def with_link(item: Memory, link: Mapping[str, str], place: object) -> dict[str, Any]:
    """Return changes that add one source to an item."""
    changes: dict[str, Any] = {"links": [*(old_link.model_dump() for old_link in item.links), dict(link)]}
    if place is not None:
        changes["metadata"] = {**item.metadata, ALSO: {**_also(item.metadata), link["id"]: place}}
    return changes


def without_sources(item: Memory, gone: Iterable[str]) -> dict[str, Any] | None:
    """Return changes that remove sources, or None if none are left."""
    names = set(gone)
    remaining = [source for source in list_source_ids(item) if source not in names]
    return keep_sources(item, remaining) if remaining else None


def keep_sources(item: Memory, sources: Sequence[str]) -> dict[str, Any]:
    """Return the changes that leave an item these sources, in order."""
    also = _also(item.metadata)
    first = list_source_ids(item)[0]
    places = {source: item.metadata.get("at") if source == first else also.get(source) for source in sources}
    own_place = places.pop(sources[0])
    also = {source: place for source, place in places.items() if place is not None}
    metadata = {key: value for key, value in item.metadata.items() if key not in {ALSO, "at"}}
    metadata |= {key: value for key, value in (("at", own_place), (ALSO, also)) if value}
    further_links = [link.model_dump() for link in item.links if link.rel != FROM]
    return {"links": [*({"rel": FROM, "id": source} for source in sources), *further_links], "metadata": metadata}


def join_items(
    items: Iterable[Mapping[str, Any]], never: Collection[str] = (), full: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return items without duplicates, with all their sources.

    Args:
        items: As they were drawn.
        never: Ids that were forgotten: of the items behind the first one they are left out.
        full: Ids of items that are stored and have room for no source more.
    """
    by_id: dict[str, dict[str, Any]] = {}
    for item in items:
        for single in _each_source(item):
            while not _has_room(by_id.get(single["id"]), single) or single["id"] in full:
                single = _next_part(single, never)  # noqa: PLW2901 - the same for the next item that says it
            existing = by_id.get(single["id"])
            if existing is None:
                by_id[single["id"]] = single
            elif single["links"][0] not in existing["links"]:
                existing["links"] = [*existing["links"], *single["links"]]
                also = {**_also(existing["metadata"]), single["links"][0]["id"]: single["metadata"]["at"]}
                existing["metadata"] = {**existing["metadata"], ALSO: also}
    return list(by_id.values())


def _each_source(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an item once for each of its sources."""
    also = _also(item["metadata"])
    metadata = {key: value for key, value in item["metadata"].items() if key != ALSO}
    return [
        {**item, "links": [link], "metadata": {**metadata, "at": also.get(link["id"], metadata["at"])}}
        for link in item["links"]
    ]


def _has_room(existing: Mapping[str, Any] | None, single: Mapping[str, Any]) -> bool:
    return existing is None or len(existing["links"]) < MOST_LINKS or single["links"][0] in existing["links"]


def _next_part(item: Mapping[str, Any], never: Collection[str]) -> dict[str, Any]:
    """Return the item as a further one with the same text."""
    part, base = item["metadata"].get(PART, 1) + 1, _make_id(item)
    while _part_id(base, part) in never:
        part += 1
    fields = {key: value for key, value in item.items() if key != "supersedes"}
    return {**fields, "id": _part_id(base, part), "metadata": {**item["metadata"], PART: part}}


def get_place(item: Memory, source_id: str) -> tuple[int, int] | None:
    """Return the place of an item's words in one of its sources."""
    place = _also(item.metadata).get(source_id, item.metadata.get("at"))
    match place:
        case [int(begin), int(end)]:
            return begin, end
    return None


def _make_id(values: Mapping[str, Any]) -> str:
    """Return the id of an item, made of its text."""
    is_turn = values["links"][0]["id"].startswith(EPISODE.prefix)
    if values["source"]["detail"] == PASSAGE:
        day = values["observed_at"][:10] if is_turn else ""
        digest = hashlib.sha256(values["content"].encode()).hexdigest()
        return derived_id(MEMORY.prefix, PASSAGE, values["group"], values["trust"], day, digest)
    words = (word.strip(_AROUND) or word for word in values["content"].casefold().split())
    statement = " ".join(word for word in words if word not in _SAYS_NOTHING)
    day = values["observed_at"][:10] if is_turn or names_time(values["content"]) else ""
    return derived_id(
        MEMORY.prefix, STAGE, values["group"], values["trust"], day, hashlib.sha256(statement.encode()).hexdigest()
    )


def _base_id(item: Memory) -> str:
    """Return the ID of the first item with the same text."""
    values = item.model_dump(mode="json")
    values["observed_at"] = to_text(item.moment)
    return _make_id(values)


def _own_id(item: Memory) -> str:
    """Return the ID of an item with its original text."""
    return _part_id(_base_id(item), item.metadata.get(PART))


def _part_id(base: str, part: object) -> str:
    return base if part is None else derived_id(MEMORY.prefix, STAGE, base, part)


def _first_id(source_id: str, content: str) -> str:
    """Return the ID of the first version: source and exact words."""
    return derived_id(MEMORY.prefix, STAGE, source_id, hashlib.sha256(content.encode()).hexdigest())


def _also(metadata: Mapping[str, Any]) -> dict[str, Any]:
    also = metadata.get(ALSO)
    return dict(also) if isinstance(also, dict) else {}


class PrecedingTurns:
    """Finder of preceding turns, in a batch or in the storage.

    Args:
        knowledge: Where the turns are.
        at_hand: Records of a batch and those before it.
    """

    def __init__(self, knowledge: Knowledge, at_hand: Iterable[object]) -> None:
        self._knowledge = knowledge
        self._turns: dict[str, list[Episode]] = {}
        self._whole: set[str] = set()
        for record in at_hand:
            if isinstance(record, Episode) and record.conversation:
                self._turns.setdefault(record.conversation, []).append(record)
        for turns in self._turns.values():
            turns.sort(key=lambda turn: turn.order)

    async def of(self, turn: Episode) -> list[Episode]:
        """Return the few preceding turns of the conversation, oldest first.

        Raises:
            StorageError: They cannot be read.
        """
        conversation = turn.conversation
        if not conversation:
            return []
        preceding = self._before(turn, self._turns.get(conversation, ()))
        if not preceding and turn.order and conversation not in self._whole:
            self._whole.add(conversation)
            newest_last = reversed(await self._knowledge.episodes.linked_to(conversation))
            self._turns[conversation] = sorted(newest_last, key=lambda earlier: earlier.order)
            preceding = self._before(turn, self._turns[conversation])
        return preceding

    @staticmethod
    def _before(turn: Episode, turns: Iterable[Episode]) -> list[Episode]:
        earlier: list[Episode] = []
        for candidate in turns:
            if candidate.id == turn.id or candidate.order > turn.order:
                break
            if is_talk(candidate) and candidate.group == turn.group:
                earlier.append(candidate)
        return earlier[-BEFORE:]


def get_source_id(memory: Memory) -> str:
    """Return the ID of an item's source, or ""."""
    return next((link.id for link in memory.links if link.rel in {FROM, SOURCE_DELETED}), "")


_QUESTION: Final = re.compile(r"[?؟](?=[\s\"')\]*_”\u2019»]|\Z)|\uff1f")
_MOST_ASKED: Final = 150
"""Characters of a question in an exchange; of a longer turn its last question."""
_SHORT_REPLY: Final = 60
"""Characters up to which a reply of a named person keeps what it replies to."""
_LEAST_CHARS: Final = 12
"""Characters of a turn that answers nothing: a shorter one, such as "ok", is not a passage."""
_MOST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A turn of a conversation.

    Attributes:
        text: Words of the turn.
        speaker: Name or role of the speaker.
        is_named: Whether `speaker` is a name, which then precedes the words.
        start: Place of the words in the text that they are from.
        id: Record of the turn, if it has one.
    """

    text: str
    speaker: str = ""
    is_named: bool = False
    start: int = 0
    id: str = ""


@dataclass(frozen=True, slots=True)
class TalkExchange:
    """Passages of a turn, and the turn that it answers, if any.

    Attributes:
        passages: Passages of the turn; each begins with what is answered.
        answered: Question or proposal that the turn answers.
        is_whole: Whether the passages have all words of that.
        speaker: Name of who says what the passages are about: of a short reply the one who proposed it.
    """

    passages: Sequence[TextPassage]
    answered: SpokenTurn | None = None
    is_whole: bool = False
    speaker: str = ""


def asks(text: str) -> bool:
    """Return True if a word ends with a question mark."""
    return _QUESTION.search(text) is not None


def cut_turn(turn: SpokenTurn, before: Sequence[SpokenTurn] = ()) -> TalkExchange:
    """Return the passages of a turn.

    Args:
        turn: Turn to cut.
        before: Few turns before it in the same conversation, oldest first.
    """
    answered = _find_answered(turn, before)
    lead = "" if answered is None else f"{_label(answered)}{_cut_question(answered.text)}\n"
    context = lead + (_label(turn) if turn.is_named or lead else "")
    place = turn.start
    passages = [
        replace(passage, text=f"{context}{passage.text}", start=place + passage.start, end=place + passage.end)
        for passage in cut_passages(turn.text, most=MOST_CHARS - len(context))
    ]
    if answered is None and len(turn.text.strip()) < _LEAST_CHARS:
        return TalkExchange(())
    is_whole = answered is not None and len(_join_lines(answered.text)) <= _MOST_ASKED
    author = turn if answered is None or asks(answered.text) else answered
    return TalkExchange(passages, answered, is_whole and bool(passages), author.speaker if author.is_named else "")


def split_turns(text: str) -> list[SpokenTurn]:
    """Return the turns of a text with lines such as `Name: words`."""
    turns: list[SpokenTurn] = []
    for line in LINE.finditer(text):
        spoken = parse_turn(line[0]) if not line[0].lstrip().startswith("{") else None
        if spoken is not None and spoken.words.strip():
            start = line.end() - len(spoken.words)
            turns.append(SpokenTurn("", spoken.speaker, is_named=True, start=start))
        elif not turns:
            turns.append(SpokenTurn("", start=line.start()))
    ends = [_find_line(text, turn.start) for turn in turns[1:]] + [len(text)]
    complete = [replace(turn, text=text[turn.start : end].rstrip()) for turn, end in zip(turns, ends, strict=True)]
    return [turn for turn in complete if turn.text.strip()]


def _label(turn: SpokenTurn) -> str:
    """Return the label of a turn, or an empty string."""
    return f"{turn.speaker[:_MOST_NAME]}: " if turn.speaker else ""


def _find_line(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _find_answered(turn: SpokenTurn, before: Sequence[SpokenTurn]) -> SpokenTurn | None:
    """Return the turn that one answers.

    That is the question directly before it; of a short reply of a named person also what was asked or proposed since
    the person's own last turn.
    """
    since: list[SpokenTurn] = []
    for earlier in reversed(before):
        if earlier.speaker == turn.speaker:
            break
        since.append(earlier)
    if since and asks(since[0].text):
        return since[0]
    if not turn.is_named or not _LEAST_CHARS <= len(_join_lines(turn.text)) <= _SHORT_REPLY:
        return None
    return next((earlier for earlier in since if asks(earlier.text) or not _is_short(earlier)), None)


def _is_short(turn: SpokenTurn) -> bool:
    return len(_join_lines(turn.text)) <= _SHORT_REPLY


def _cut_question(text: str) -> str:
    """Return a question as one line, shortened to its last question."""
    flat = _join_lines(text)
    if len(flat) <= _MOST_ASKED:
        return flat
    ends = [question.end() for question in _QUESTION.finditer(flat)]
    flat = flat[: ends[-1] if ends else None][-_MOST_ASKED:]
    start = next(find_breaks(flat), 0)
    return flat[start:] if start else f"…{flat[1:]}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())
