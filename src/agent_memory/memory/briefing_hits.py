"""What of an agent's memories and conversations bears on a prompt: the best hits, and the talk in which they stand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_memory.capture.own import typed_part
from agent_memory.language.speakers import turn_of
from agent_memory.memory.briefing_choice import Passage
from agent_memory.memory.preferring import OTHER_PROJECT
from agent_memory.models import EPISODE, Episode, Listing, Resource, SearchFilters, SearchRequest, of_another_project

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.memory import Caller
    from agent_memory.models import Kind, ListPage, Record
    from agent_memory.store.answer import Answer

_HITS: Final = 20
_LEAST_STRENGTH: Final = 0.3
"""Share of the prompt's words or cosine of the best hit, from which hits are read.

A prompt is longer than a question: it has words that other memories hold, so that its match says little."""
_LOOKED_AT: Final = 8
"""Hits among which a talk has to have two to be looked into; and turns around each of its hits that are read."""
_LEAST: Final = 2
_TALKS: Final = 3
"""Talks that are looked into, the best."""
_TURNS: Final = 200
_MOST_OF_ONE: Final = 0.7
"""Greatest share of a talk that one side says. In dialogues of two it is near a half (sde-bench .5, LoCoMo .5); of what
capture kept of real sessions it is .86."""
_STEEPNESS: Final = 4
"""Exponent of a score over the best one: what is half as near counts a sixteenth."""
_PEOPLE: Final = frozenset({"user", "human"})
_ROLES: Final = _PEOPLE | {"agent", "ai", "assistant", "developer", "function", "model", "system", "tool"}
_MAX_NAME_CHARS: Final = 60


class Readable(Protocol):
    """What is asked of records: as `RecordStorage` answers it, and the service for memories."""

    async def answer(self, request: SearchRequest) -> Answer[Any]:
        """Return the best matches."""

    async def browse(self, listing: Listing) -> ListPage[Any]:
        """Return a part of a list."""

    async def linked_to(self, record_id: str) -> list[Any]:
        """Return what is linked to a record."""

    async def valid_among(self, record_ids: Collection[str]) -> dict[str, Any]:
        """Return those of some records that count."""


class Source(NamedTuple):
    """Records of one kind."""

    kind: Kind[Any]
    records: Readable


async def bearing_on(
    asked: str, sources: Iterable[Source], now: datetime, caller: Caller, patience: float
) -> list[Passage]:
    """Return what bears on a prompt: talks whole as far as they are near their hits, then single notes.

    Nothing where what was found is likely about something else. What comes from untrusted sources is left out, and so
    is what a user pasted: nobody asked for it yet.

    Args:
        asked: The prompt.
        sources: Where to look.
        now: The moment of asking.
        caller: The session: what belongs to other groups is left out, what belongs to other projects counts less.
        patience: Seconds to wait at most for the embedding of the prompt; without it words are compared alone.

    Raises:
        StorageError: What is stored cannot be read.
    """
    filters = SearchFilters(include_items=True).within(caller.group)
    request = SearchRequest(asked, _HITS, now, filters, patience=patience)
    places = list(sources)
    hits: list[_Hit] = []
    for source in places:
        answer = await source.records.answer(request)
        if (answer.ranking.strength or 0.0) >= _LEAST_STRENGTH:
            for hit, record in zip(answer.ranking.hits, answer.records, strict=True):
                if record.trust != "low":
                    hits.append(_Hit(_score(hit.score, record, caller), record, source))
    hits = [hit for hit in await _with_talks(hits, places) if not _was_pasted(hit)]
    hits.sort(key=lambda hit: -hit.score)
    passages: list[Passage] = []
    for talk in _talks(hits[:_LOOKED_AT]):
        passages += await _told_in(talk, hits, filters, caller.group)
    told = {each.talk for each in passages}
    passages += _notes([hit for hit in hits if hit.talk not in told or not hit.talk], hits)
    return [each for each in passages if each.text.strip()]


def _score(score: float, record: Record, caller: Caller) -> float:
    return score * OTHER_PROJECT if of_another_project(record, caller.project) else score


@dataclass(frozen=True, slots=True)
class _Hit:
    """A hit, and the talk that it stands in, or is drawn from: `turns` says where that is kept."""

    score: float
    record: Record
    source: Source
    talk: str = ""
    turns: Source | None = None
    turn: Episode | None = None

    @property
    def place(self) -> str:
        """The id of the turn that it is or is drawn from."""
        return self.record.id if self.turn is None else self.turn.id


async def _with_talks(hits: Sequence[_Hit], sources: Sequence[Source]) -> list[_Hit]:
    """Return hits with the talk of each: an item stands for the turn that it was drawn from."""
    said_in = {hit.record.id: _turn_of(hit.record) for hit in hits}
    turns: dict[str, Episode] = {}
    kept = next((source for source in sources if source.kind is EPISODE), None)
    if kept is not None:
        turns = await kept.records.valid_among([one for one in said_in.values() if one])
    found = []
    for hit in hits:
        turn = turns.get(said_in[hit.record.id])
        if turn is not None and turn.trust != "low":
            found.append(replace(hit, talk=_talk_of(turn), turns=kept, turn=turn))
        else:
            found.append(replace(hit, talk=_talk_of(hit.record), turns=hit.source))
    return found


def _turn_of(record: Record) -> str:
    """Return the id of the turn that an item was drawn from; empty for none."""
    if not record.is_item:
        return ""
    return next((link.id for link in record.links if link.id.startswith(EPISODE.prefix)), "")


def _talks(hits: Sequence[_Hit]) -> list[str]:
    """Return the talks in which at least two of the best hits stand, the best first."""
    found = Counter(hit.talk for hit in hits if hit.talk)
    return [talk for talk in dict.fromkeys(hit.talk for hit in hits) if found[talk] >= _LEAST][:_TALKS]


def _talk_of(record: Record) -> str:
    """Return what stands for the talk of a record: its conversation, else its session; empty for none."""
    if isinstance(record, Episode):
        return record.conversation or record.created_by_session
    return "" if record.is_item or _was_noted(record) else record.created_by_session


def _was_noted(record: Record) -> bool:
    """Tell whether a memory was stored as a statement of its own, by a tool or by capture, and is no turn of a talk."""
    return bool(record.source.detail) or record.confidence is not None


async def _told_in(talk: str, hits: Sequence[_Hit], filters: SearchFilters, group: str | None) -> list[Passage]:
    """Return the turns of a talk around its hits, as they were said; none where they are no talk.

    Notes of one session have that in common and may be about many things: what one person typed one after the other,
    or the few statements that capture kept of a long session, most of them by the person.
    """
    own = [hit for hit in hits if hit.talk == talk]
    best, source = own[0], own[0].turns or own[0].source
    turn = best.turn or best.record
    if isinstance(turn, Episode) and turn.conversation:
        every = sorted(await source.records.linked_to(talk), key=lambda each: each.order)
        turns: list[Any] = [each for each in every if group is None or each.belongs_to in {"", group}]
    else:
        listed = (await source.records.browse(Listing("oldest", filters, session=talk, limit=_TURNS))).records
        turns = [each for each in listed if not _was_noted(each)]
        spoken = Counter(map(_said_by, turns))
        if max(spoken.values(), default=0) > _MOST_OF_ONE * len(turns):
            return []
    named = {hit.place for hit in own}
    places = [place for place, each in enumerate(turns) if each.id in named]
    near = [
        each
        for place, each in enumerate(turns)
        if each.trust != "low" and any(abs(place - hit) <= _LOOKED_AT for hit in places)
    ]
    return [_passage(each, source, _nearness(best, hits), talk) for each in near]


def _said_by(record: Any) -> str:
    turn = turn_of(record.content)
    return turn.speaker.casefold() if turn is not None else str(record.source.kind)


def _notes(hits: Sequence[_Hit], every: Sequence[_Hit]) -> list[Passage]:
    return [_passage(hit.record, hit.source, _nearness(hit, every), "") for hit in hits]


def _nearness(hit: _Hit, every: Sequence[_Hit]) -> float:
    return float((hit.score / every[0].score) ** _STEEPNESS) if every[0].score else 1.0


def _was_pasted(hit: _Hit) -> bool:
    """Return True if an item was drawn from what a user pasted: then it is trusted less than the turn."""
    return hit.turn is not None and _is_live(hit.turn) and hit.record.trust != hit.turn.trust


def _is_live(record: Record) -> bool:
    """Return True if a record is a user's turn of a session of the agent's own, which may hold what was pasted."""
    return isinstance(record, Episode) and record.role in _PEOPLE and record.source.kind == "user"


def _passage(record: Any, source: Source, nearness: float, talk: str) -> Passage:
    text = source.kind.text_of(record)
    if _is_live(record):
        text = typed_part(text)
    turn = turn_of(text)
    role = record.role if isinstance(record, Episode) else record.source.kind
    label = turn.speaker.casefold() if turn and record.trust != "low" else ""
    words = turn.words if turn and talk else text
    is_own = not isinstance(record, Resource)  # a document's words are not those of who stored it
    by_person = is_own and (role in _PEOPLE or label in _PEOPLE)
    moment = record.moment
    return Passage(
        record, words, moment, talk, by_person, _name_speaker(record, turn.speaker if turn else ""), nearness
    )


def _name_speaker(record: Record, label: str) -> str:
    """Return the name of a speaker who is neither the user nor the agent, or an empty text.

    Args:
        record: Turn, or passage of a conversation.
        label: Name before the words of the text.
    """
    name = " ".join((getattr(record, "speaker", "") or label).split())[:_MAX_NAME_CHARS]
    if name and name.casefold() not in _ROLES:
        return name
    return "unknown speaker" if isinstance(record, Episode) and record.role in {"person", "unknown"} else ""
