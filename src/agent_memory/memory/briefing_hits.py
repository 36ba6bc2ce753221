"""Passages about a prompt: the best hits and the turns around them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_memory.capture.own import typed_part
from agent_memory.language.speakers import turn_of
from agent_memory.memory.briefing_choice import Passage
from agent_memory.memory.searcher import OTHER_PROJECT
from agent_memory.models import EPISODE, Episode, Listing, Resource, SearchFilters, SearchRequest, of_another_project

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller
    from agent_memory.models import Kind, ListPage, Record
    from agent_memory.store.answer import Answer

_HITS: Final = 20
_LEAST_STRENGTH: Final = 0.3
"""Least share of the prompt's words, or least cosine, of the best hit.

A prompt is longer than a question: other memories have some of its words, so a match says little."""
_BEST_HITS: Final = 8
"""Best hits, of which a talk needs two to be read; also the number of turns that are read around a hit."""
_MIN_HITS: Final = 2
_TALKS: Final = 3
"""Talks that are read, the best ones."""
_TURNS: Final = 200
_MOST_OF_ONE: Final = 0.7
"""Greatest share of turns by one side. It is .5 in dialogues (sde-bench, LoCoMo), and .86 in what capture kept of real
sessions."""
_STEEPNESS: Final = 4
"""Exponent of the ratio of a score to the best one: half the score counts a sixteenth."""
_PEOPLE: Final = frozenset({"user", "human"})
_ROLES: Final = _PEOPLE | {"agent", "ai", "assistant", "developer", "function", "model", "system", "tool"}
_MAX_NAME_CHARS: Final = 60


class Readable(Protocol):
    """Reading methods of a storage."""

    async def answer(self, request: SearchRequest) -> Answer[Any]:
        """Return the best matches."""

    async def browse(self, listing: Listing) -> ListPage[Any]:
        """Return part of a list."""

    async def linked_to(self, record_id: str) -> list[Any]:
        """Return the records that are linked to a record."""

    async def valid_among(self, record_ids: Collection[str]) -> dict[str, Any]:
        """Return the valid records among some IDs."""


class Source(NamedTuple):
    """Kind of records and their storage."""

    kind: Kind[Any]
    records: Readable


async def bearing_on(
    asked: str, sources: Iterable[Source], now: datetime, caller: Caller, patience: float
) -> list[Passage]:
    """Return passages about a prompt: parts of talks, then single notes.

    Empty if the hits are likely about something else. Text of untrusted sources and pasted text is left out.

    Args:
        asked: Prompt of the user.
        sources: Storages to search.
        now: Time of the prompt.
        caller: Session; records of other groups are left out, those of other projects count less.
        patience: Seconds to wait for the embedding of the prompt; then words alone are compared.

    Raises:
        StorageError: The records cannot be read.
    """
    filters = SearchFilters(include_items=True).within(caller.group)
    request = SearchRequest(asked, _HITS, now, filters, patience=patience)
    storages = list(sources)
    hits: list[_Hit] = []
    for source in storages:
        answer = await source.records.answer(request)
        if (answer.ranking.strength or 0.0) >= _LEAST_STRENGTH:
            for hit, record in zip(answer.ranking.hits, answer.records, strict=True):
                if record.trust != "low":
                    hits.append(_Hit(_score(hit.score, record, caller), record, source))
    hits = [hit for hit in await _add_talks(hits, storages) if not _was_pasted(hit)]
    hits.sort(key=lambda hit: -hit.score)
    passages: list[Passage] = []
    for talk in _choose_talks(hits[:_BEST_HITS]):
        passages += await _read_talk(talk, hits, filters, caller.group)
    read = {passage.talk for passage in passages}
    passages += _build_notes([hit for hit in hits if hit.talk not in read or not hit.talk], hits)
    return [passage for passage in passages if passage.text.strip()]


def _score(score: float, record: Record, caller: Caller) -> float:
    return score * OTHER_PROJECT if of_another_project(record, caller.project) else score


@dataclass(frozen=True, slots=True)
class _Hit:
    """A hit with its talk; `turns` is the storage of the talk."""

    score: float
    record: Record
    source: Source
    talk: str = ""
    turns: Source | None = None
    turn: Episode | None = None

    @property
    def place(self) -> str:
        """ID of the turn that it is or was drawn from."""
        return self.record.id if self.turn is None else self.turn.id


async def _add_talks(hits: Sequence[_Hit], sources: Sequence[Source]) -> list[_Hit]:
    """Return hits with the talks of themselves or their turns."""
    turn_ids = {hit.record.id: _get_turn_id(hit.record) for hit in hits}
    turns: dict[str, Episode] = {}
    episodes = next((source for source in sources if source.kind is EPISODE), None)
    if episodes is not None:
        turns = await episodes.records.valid_among([turn_id for turn_id in turn_ids.values() if turn_id])
    with_talks = []
    for hit in hits:
        turn = turns.get(turn_ids[hit.record.id])
        if turn is not None and turn.trust != "low":
            with_talks.append(replace(hit, talk=_get_talk(turn), turns=episodes, turn=turn))
        else:
            with_talks.append(replace(hit, talk=_get_talk(hit.record), turns=hit.source))
    return with_talks


def _get_turn_id(record: Record) -> str:
    """Return the ID of the turn of an item; empty for none."""
    if not record.is_item:
        return ""
    return next((link.id for link in record.links if link.id.startswith(EPISODE.prefix)), "")


def _choose_talks(hits: Sequence[_Hit]) -> list[str]:
    """Return the talks with two or more hits, the best first."""
    counts = Counter(hit.talk for hit in hits if hit.talk)
    return [talk for talk in dict.fromkeys(hit.talk for hit in hits) if counts[talk] >= _MIN_HITS][:_TALKS]


def _get_talk(record: Record) -> str:
    """Return the conversation of a record, else its session; empty for none."""
    if isinstance(record, Episode):
        return record.conversation or record.created_by_session
    return "" if record.is_item or _was_noted(record) else record.created_by_session


def _was_noted(record: Record) -> bool:
    """Return True if a memory is a statement, not a turn."""
    return bool(record.source.detail) or record.confidence is not None


async def _read_talk(talk: str, hits: Sequence[_Hit], filters: SearchFilters, group: str | None) -> list[Passage]:
    """Return the turns of a talk around its hits, in their order.

    Empty if one side said most of them: notes of one session may be about many things.
    """
    of_talk = [hit for hit in hits if hit.talk == talk]
    best, source = of_talk[0], of_talk[0].turns or of_talk[0].source
    turn = best.turn or best.record
    if isinstance(turn, Episode) and turn.conversation:
        linked = sorted(await source.records.linked_to(talk), key=lambda turn: turn.order)
        turns: list[Any] = [turn for turn in linked if group is None or turn.belongs_to in {"", group}]
    else:
        listed = (await source.records.browse(Listing("oldest", filters, session=talk, limit=_TURNS))).records
        turns = [record for record in listed if not _was_noted(record)]
        spoken = Counter(map(_get_speaker, turns))
        if max(spoken.values(), default=0) > _MOST_OF_ONE * len(turns):
            return []
    named = {hit.place for hit in of_talk}
    hit_positions = [position for position, record in enumerate(turns) if record.id in named]
    near = [
        record
        for position, record in enumerate(turns)
        if record.trust != "low" and any(abs(position - hit) <= _BEST_HITS for hit in hit_positions)
    ]
    return [_build_passage(record, source, _get_nearness(best, hits), talk) for record in near]


def _get_speaker(record: Any) -> str:
    turn = turn_of(record.content)
    return turn.speaker.casefold() if turn is not None else str(record.source.kind)


def _build_notes(hits: Sequence[_Hit], hits_by_score: Sequence[_Hit]) -> list[Passage]:
    return [_build_passage(hit.record, hit.source, _get_nearness(hit, hits_by_score), "") for hit in hits]


def _get_nearness(hit: _Hit, hits_by_score: Sequence[_Hit]) -> float:
    return float((hit.score / hits_by_score[0].score) ** _STEEPNESS) if hits_by_score[0].score else 1.0


def _was_pasted(hit: _Hit) -> bool:
    """Return True if an item of pasted text has less trust than its turn."""
    return hit.turn is not None and _is_live(hit.turn) and hit.record.trust != hit.turn.trust


def _is_live(record: Record) -> bool:
    """Return True if a record is a user's turn of a live session."""
    return isinstance(record, Episode) and record.role in _PEOPLE and record.source.kind == "user"


def _build_passage(record: Any, source: Source, nearness: float, talk: str) -> Passage:
    text = source.kind.text_of(record)
    if _is_live(record):
        text = typed_part(text)
    turn = turn_of(text)
    role = record.role if isinstance(record, Episode) else record.source.kind
    label = turn.speaker.casefold() if turn and record.trust != "low" else ""
    words = turn.words if turn and talk else text
    is_own = not isinstance(record, Resource)  # a document has the words of its author
    by_person = is_own and (role in _PEOPLE or label in _PEOPLE)
    moment = record.moment
    return Passage(
        record, words, moment, talk, by_person, _name_speaker(record, turn.speaker if turn else ""), nearness
    )


def _name_speaker(record: Record, label: str) -> str:
    """Return the name of a third speaker, or an empty text.

    Args:
        record: Turn, or passage of a conversation.
        label: Name before the words of the text.
    """
    name = " ".join((getattr(record, "speaker", "") or label).split())[:_MAX_NAME_CHARS]
    if name and name.casefold() not in _ROLES:
        return name
    return "unknown speaker" if isinstance(record, Episode) and record.role in {"person", "unknown"} else ""
