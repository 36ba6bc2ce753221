"""Passages about a prompt: the best hits and the turns around them."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.capture.typed_text import get_typed_part
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.language.sentences import find_sentences
from agent_memory.language.speakers import parse_turn
from agent_memory.late import compile_late
from agent_memory.memory.searcher import OTHER_PROJECT
from agent_memory.models import (
    EPISODE,
    Episode,
    Listing,
    Resource,
    SearchFilters,
    SearchRequest,
    get_turn_id,
    of_another_project,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller
    from agent_memory.models import Kind, Record
    from agent_memory.store.record_storage import RecordStorage


_HITS: Final = 20
_PATIENCE: Final = 0.05
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
_CODE: Final = compile_late(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD: Final = compile_late(r"\w{3,}")
_NOTE_CHARS: Final = 300
"""Characters of a note that is shown whole: its sentences were written together."""
_NOTE_WORTH: Final = 3.0
"""Weight of a note; that of a sentence of talk is 1 to 8."""
_KNOWN: Final = 0.7
"""Share of the weight that a sentence loses if the prompt or chosen sentences have all its words."""
_SHORTEST: Final = 15
"""Characters added to a length: a very short sentence says little by itself."""
_LEAST_TOKENS: Final = 5
_SETTLES: Final = compile_late(
    r"\b(?:exactly|always|never|must|only|rules?|policy|settled|amend\w*|instead|decided|decision|wins?|cap(?:s|ped)?"
    r"|at (?:most|least)|no longer|supersed\w*|from now on|going forward|standard\w*|convention|agreed|pinned"
    r"|require[sd]?|deliberate\w*|source of truth|not \w+|don['\u2019]t|do not|keeps?|stays?|drops?|dropped|reject\w*"
    r"|before|after|first|then|unless|except|genau|immer|nie(?:mals)?|muss|müssen|nur|regeln?|entschieden|entscheidung|statt"
    r"|stattdessen|mindestens|höchstens|nicht mehr|ab jetzt|künftig|vereinbart|kein\w*|nicht \w+|zuerst"
    r"|danach|vor|nach|außer|bleibt)\b",
    re.IGNORECASE,
)
_LITERAL: Final = compile_late(
    r"`[^`]+`|'[^' ]{1,30}'|\"[^\" ]{1,30}\"|\b\d+\b|\b[a-z]+_[a-z_]+\b|\b[A-Z_]{4,}\b|->|=\B"
)
_SUMS_UP: Final = compile_late(
    r"\b(?:final|full|amended|whole|definitive|project)\b[^.:]{0,40}\b(?:rule|policy|map|contract|convention)\b"
    r"|\bthe (?:rule|policy)\b|\bsettled\b|\bto (?:recap|sum up|summari[sz]e)\b|\brecap\b|\bgot it\b|\bsupersed\w*"
    r"|\b(?:die|unsere) regel\b|\bzusammengefasst\b|\bverstanden\b",
    re.IGNORECASE,
)
_ASIDE: Final = compile_late(
    r"\b(?:unrelated|flaky|heads-up|rerun|fair warning|by the way|oh, and|übrigens|nebenbei)\b", re.IGNORECASE
)
_INTENT: Final = compile_late(
    r"\b(?:I['\u2019]ll|I will|let me|I['\u2019]d|I would|shall I|should I|want me|before I|I could|plan:|looking at"
    r"|reading|running|my (?:plan|inclination|instinct)|I was going|ich werde|ich würde|soll ich|lass mich)\b",
    re.IGNORECASE,
)
_ANSWERS: Final = compile_late(
    r"(?:no|not|never|exactly|absolutely not|careful|right|almost|neither|correct|yes|confirmed|nein|nicht|nie|genau|ja"
    r"|richtig|fast)\b",
    re.IGNORECASE,
)
_MOST: Final = 4
"""Words of one kind that count: a sentence with more of them is a list, not a decision."""
_SETTLING, _NAMING = 0.6, 0.3
_PERSON, _ANSWER = 1.6, 1.2
_OPENING: Final = 0.4
"""Factor of a first turn, which says the same as the prompt."""
_SUMMING: Final = 2.0
_SUMMING_PERSON: Final = 1.3
_BESIDES: Final = 0.2
_INTENDED: Final = 0.35
_EMPTY: Final = 0.4
"""Factor of a model's sentence without a decision or a name: "Understood."."""
_PROPOSED, _CORRECTED = 0.5, 0.3
_LAST_TURNS: Final = 3


class RecordSource(NamedTuple):
    """Kind of records and their storage."""

    kind: Kind[Any]
    records: RecordStorage[Any]


async def find_passages(
    asked: str, sources: Iterable[RecordSource], now: datetime, caller: Caller, patience: float | None
) -> list[RecordPassage]:
    """Return passages about a prompt: parts of talks, then single notes.

    Empty if the hits are likely about something else. Text of untrusted sources and pasted text is left out.

    Args:
        asked: Prompt of the user.
        sources: Storages to search.
        now: Time of the prompt.
        caller: Session; records of other groups are left out, those of other projects count less.
        patience: As in `build_request`.

    Raises:
        StorageError: The records cannot be read.
    """
    filters = SearchFilters(include_items=True).within(caller.group)
    request = build_request(asked, _HITS, now, filters, patience)
    storages = list(sources)
    hits: list[_PassageHit] = []
    for source in storages:
        answer = await source.records.answer(request)
        if (answer.ranking.strength or 0.0) >= _LEAST_STRENGTH:
            for hit, record in zip(answer.ranking.hits, answer.records, strict=True):
                if record.trust != "low":
                    factor = OTHER_PROJECT if of_another_project(record, caller.project) else 1
                    hits.append(_PassageHit(hit.score * factor, record, source))
    hits = [hit for hit in await _add_talks(hits, storages) if not _is_pasted(hit)]
    hits.sort(key=lambda hit: -hit.score)
    passages: list[RecordPassage] = []
    for talk in _choose_talks(hits[:_BEST_HITS]):
        passages += await _read_talk(talk, hits, filters, caller.group)
    read = {passage.talk for passage in passages}
    notes = [hit for hit in hits if hit.talk not in read or not hit.talk]
    passages += [_build_passage(hit.record, hit.source, _get_nearness(hit, hits), "") for hit in notes]
    return [passage for passage in passages if passage.text.strip()]


def build_request(
    asked: str, limit: int, now: datetime, filters: SearchFilters, patience: float | None
) -> SearchRequest:
    """Return the request that finds records about a prompt.

    Loading a model takes half a second of a processor, which a greeting is not worth.

    Args:
        asked: Prompt of the user.
        limit: Number of records.
        now: Time of the prompt.
        filters: Conditions of all records.
        patience: Seconds to wait for the embedding of the prompt; None waits only for a loaded model.
    """
    loads_model = patience is not None
    return SearchRequest(
        asked, limit, now, filters, patience=patience if loads_model else _PATIENCE, loads_model=loads_model
    )


@dataclass(frozen=True, slots=True)
class _PassageHit:
    """A hit with its talk; `turns` is the storage of the talk."""

    score: float
    record: Record
    source: RecordSource
    talk: str = ""
    turns: RecordSource | None = None
    turn: Episode | None = None

    @property
    def place(self) -> str:
        """ID of the turn that it is or was drawn from."""
        return self.record.id if self.turn is None else self.turn.id


async def _add_talks(hits: Sequence[_PassageHit], sources: Sequence[RecordSource]) -> list[_PassageHit]:
    """Return hits with the talks of themselves or their turns."""
    turn_ids = {hit.record.id: get_turn_id(hit.record) if hit.record.is_item else "" for hit in hits}
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


def _choose_talks(hits: Sequence[_PassageHit]) -> list[str]:
    """Return the talks with two or more hits, the best first."""
    counts = Counter(hit.talk for hit in hits if hit.talk)
    return [talk for talk in dict.fromkeys(hit.talk for hit in hits) if counts[talk] >= _MIN_HITS][:_TALKS]


def _get_talk(record: Record) -> str:
    """Return the conversation of a record, else its session; empty for none."""
    if isinstance(record, Episode):
        return record.conversation or record.created_by_session
    return "" if record.is_item or _is_noted(record) else record.created_by_session


def _is_noted(record: Record) -> bool:
    """Return True if a memory is a statement, not a turn."""
    return bool(record.source.detail) or record.confidence is not None


async def _read_talk(
    talk: str, hits: Sequence[_PassageHit], filters: SearchFilters, group: str | None
) -> list[RecordPassage]:
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
        turns = [record for record in listed if not _is_noted(record)]
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
    turn = parse_turn(record.content)
    return turn.speaker.casefold() if turn is not None else str(record.source.kind)


def _get_nearness(hit: _PassageHit, hits_by_score: Sequence[_PassageHit]) -> float:
    return float((hit.score / hits_by_score[0].score) ** _STEEPNESS) if hits_by_score[0].score else 1.0


def _is_pasted(hit: _PassageHit) -> bool:
    """Return True if a pasted item has less trust than its turn."""
    return hit.turn is not None and _is_live(hit.turn) and hit.record.trust != hit.turn.trust


def _is_live(record: Record) -> bool:
    """Return True if a record is the user's turn in a session."""
    return isinstance(record, Episode) and record.role in _PEOPLE and record.source.kind == "user"


def _build_passage(record: Any, source: RecordSource, nearness: float, talk: str) -> RecordPassage:
    text = source.kind.text_of(record)
    if _is_live(record):
        text = get_typed_part(text)
    turn = parse_turn(text)
    role = record.role if isinstance(record, Episode) else record.source.kind
    label = turn.speaker.casefold() if turn and record.trust != "low" else ""
    words = turn.words if turn and talk else text
    is_own = not isinstance(record, Resource)  # a document has the words of its author
    by_person = is_own and (role in _PEOPLE or label in _PEOPLE)
    moment = record.moment
    return RecordPassage(
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


@dataclass(frozen=True, slots=True)
class RecordPassage:
    """Text of a record, its place in a conversation and its relevance.

    Attributes:
        record: Record of the text.
        text: Words without the speaker.
        at: Time of saying.
        talk: ID of the conversation; empty for a note.
        by_person: True if a person said it.
        speaker: Name of another speaker than the user and the agent; empty for these two.
        nearness: 0 to 1, best 1.
    """

    record: Record
    text: str
    at: datetime
    talk: str = ""
    by_person: bool = False
    speaker: str = ""
    nearness: float = 1.0

    @property
    def id(self) -> str:
        """ID of the record."""
        return self.record.id


@dataclass(frozen=True, slots=True)
class ChosenSentence:
    """A sentence, or a short note, that is shown.

    Attributes:
        passage: Passage of the sentence.
        number: Position of the passage, and of the sentence in it: the order of reading.
        text: Text of the sentence.
    """

    passage: RecordPassage
    number: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class _WeighedSentence:
    chosen: ChosenSentence
    weight: float
    words: frozenset[str]


def choose(passages: Sequence[RecordPassage], asked: str, room: int) -> list[ChosenSentence]:
    """Return the chosen sentences, in the order of reading.

    Args:
        passages: Passages by talk, turns in their order.
        asked: Prompt of the user, whose words are known.
        room: Maximum tokens, see `estimate_tokens`; each sentence costs two more.
    """
    sentences = list(_weigh_all(passages))
    seen = set(_find_words(asked))
    waiting = [(-_get_gain(sentence, seen), number) for number, sentence in enumerate(sentences)]
    heapq.heapify(waiting)
    chosen: list[ChosenSentence] = []
    while waiting and room >= _LEAST_TOKENS:
        number = heapq.heappop(waiting)[1]
        best = sentences[number]
        now = (-_get_gain(best, seen), number)  # gains only fall, so those of the others are upper bounds
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
            continue
        cost = estimate_tokens(best.chosen.text) + 2
        if cost <= room:
            room -= cost
            chosen.append(best.chosen)
            seen |= best.words
    return sorted(chosen, key=lambda sentence: sentence.number)


def _get_gain(sentence: _WeighedSentence, seen: set[str]) -> float:
    """Return the gain of a sentence for the root of its length."""
    known_share = len(sentence.words & seen) / max(1, len(sentence.words))
    return float(sentence.weight * (1 - _KNOWN * known_share) / (len(sentence.chosen.text) + _SHORTEST) ** 0.5)


def _weigh_all(passages: Sequence[RecordPassage]) -> Iterator[_WeighedSentence]:
    sizes: dict[str, int] = {}
    for passage in passages:
        sizes[passage.talk] = sizes.get(passage.talk, 0) + 1
    turns: dict[str, int] = {}
    for number, passage in enumerate(passages):
        turn = turns[passage.talk] = turns.get(passage.talk, -1) + 1
        if not passage.talk:
            yield from _weigh_note(passage, number)
            continue
        after = passages[number + 1].text if turn + 1 < sizes[passage.talk] else ""
        place = SentencePlace(turn, sizes[passage.talk], passage.by_person, after.lstrip())
        for position, sentence in enumerate(_split(passage.text)):
            weight = get_worth(sentence, place) * passage.nearness
            if weight:
                yield _WeighedSentence(
                    ChosenSentence(passage, (number, position), sentence), weight, _find_words(sentence)
                )


def _weigh_note(passage: RecordPassage, number: int) -> Iterator[_WeighedSentence]:
    whole = " ".join(passage.text.split())
    if len(whole) <= _NOTE_CHARS:
        yield _WeighedSentence(
            ChosenSentence(passage, (number, 0), whole), _NOTE_WORTH * passage.nearness, _find_words(whole)
        )
        return
    for position, sentence in enumerate(_split(passage.text)):
        weight = get_worth(sentence, SentencePlace()) * passage.nearness
        if weight:
            yield _WeighedSentence(ChosenSentence(passage, (number, position), sentence), weight, _find_words(sentence))


def _split(text: str) -> Iterable[str]:
    """Return the sentences of a text, one a line, without fenced code."""
    bare = _CODE.sub("\n", text)
    return (" ".join(bare[start:end].split()) for start, end in find_sentences(bare))


def _find_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


@dataclass(frozen=True, slots=True)
class SentencePlace:
    """Position of a sentence in a conversation.

    Attributes:
        turn: Number of its turn, from 0.
        turns: Number of turns.
        by_person: True if a person said it, and not a model.
        answered: Beginning of the next turn.
    """

    turn: int = 0
    turns: int = 1
    by_person: bool = False
    answered: str = ""


def get_worth(sentence: str, place: SentencePlace) -> float:
    """Return the factor of a sentence about decisions: 0 for a question.

    Args:
        sentence: Text of the sentence.
        place: Position of the sentence; a conversation of one turn has no opening and no proposal.
    """
    if sentence.endswith(("?", "\uff1f")):
        return 0.0
    settles = min(_MOST, len(_SETTLES.findall(sentence)))
    names = min(_MOST, len(_LITERAL.findall(sentence)))
    weight = 1.0 + _SETTLING * settles + _NAMING * names
    sums_up = _SUMS_UP.search(sentence) is not None
    if _ASIDE.search(sentence):
        weight *= _BESIDES
    if place.turns == 1:
        return weight
    if place.by_person:
        weight *= (_PERSON if place.turn else 1.0) * (_SUMMING_PERSON if sums_up else 1.0)
    else:
        weight *= _get_model_factor(sentence, place, sums_up=sums_up, settles=settles + names > 0)
    if place.turn == 0:
        return weight * _OPENING
    return weight * _ANSWER if _ANSWERS.match(sentence) else weight


def _get_model_factor(sentence: str, place: SentencePlace, *, sums_up: bool, settles: bool) -> float:
    """Return the factor of a model's sentence: proposals and recaps count less."""
    factor = _SUMMING if sums_up else 1.0
    if not settles:
        factor *= _EMPTY
    if _INTENT.search(sentence):
        factor *= _INTENDED
    if not sums_up and place.turn < place.turns - _LAST_TURNS:
        factor *= _CORRECTED if _ANSWERS.match(place.answered) else _PROPOSED
    return factor
