"""From a turn or a document to the items that it gives, as fields of memories. Pure.

The id of an item is made of what it says, of its group, its trust and, of talk, its day: so the same statement from two
sources is one item, and a number, a denial or a name more makes another.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.own import typed_part
from agent_memory.knowledge.facade.shapes import FROM
from agent_memory.knowledge.intake.drafting import PERSON, UNKNOWN
from agent_memory.knowledge.items import statements
from agent_memory.knowledge.items.extraction.claims import Claim, Passage
from agent_memory.knowledge.items.extraction.condensing import WITHDRAWS, WORD, mends
from agent_memory.knowledge.items.extraction.documents import ROW, claims_of_document
from agent_memory.knowledge.items.extraction.talk import ANSWER, BEFORE, answer_of, claims_of_talk
from agent_memory.knowledge.items.extraction.telling import KNOWS_NOT, is_of_a_time
from agent_memory.models import EPISODE, MEMORY, Episode, derived_id, to_text
from agent_memory.service.trust import lowest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent_memory.models import Memory, Resource, Trust

STAGE: Final = "items"
WITHDRAWN: Final = "withdrawn"
"""Rule of an item that says that something was taken back."""
ALSO: Final = "also_at"
"""Key of the metadata that has the places in further sources, by their ids."""
_SAID: Final = frozenset({"user", "assistant", PERSON, UNKNOWN})
"""Roles whose turns are talk; what tools answer and systems say is kept and not drawn from."""
_NARRATES: Final = re.compile(
    r"(?:(?:sure|ok|okay|great|done|now|next|first|of course|certainly)[,.!]?\s+)*(?:let me|let['\u2019]s|i['\u2019]ll"
    r"|i will|i['\u2019]m going to|i am going to|i can|here(?:['\u2019]s| is| are)|feel free|(?:i['\u2019]m )?happy to"
    r"|(?:i )?hope (?:this|that)|lass mich|ich werde|hier (?:ist|sind))\b",
    re.IGNORECASE,
)
"""How an agent says what it does next, rather than what is so."""
_SAYS_NOTHING: Final = frozenset("a an the really just very ein eine der das".split())  # noqa: SIM905
_TRUSTS: Final[tuple[Trust, ...]] = ("low", "medium", "high")
_AROUND: Final = ".,;:!?\"'()[]{}\u2026\u2019\u201c\u201d\u2013\u2014*_`"
_MOST_TAKEN_BACK: Final = 300
MOST_LINKS: Final = 90
"""Sources of one item, of the 100 links that a record may have; more of them are of another item that says the same."""
PART: Final = "part"
"""Key of the metadata that tells such an item from the first, from 2."""


def is_talk(record: Episode) -> bool:
    """Tell whether a record is a turn of people or of an agent."""
    return record.role in _SAID and record.content_type == "message"


def is_drawn_from(record: Resource | Episode) -> bool:
    """Tell whether statements are drawn from a record: not from what tools answered, and not from a title."""
    return (
        is_talk(record) if isinstance(record, Episode) else record.resource_type != "conversation" or record.chars > 0
    )


def drawn_from(record: Resource | Episode, text: str, before: Sequence[Episode] = ()) -> list[dict[str, Any]]:
    """Return the items of a record; none of what is no talk and no document.

    Args:
        record: It.
        text: All of its text.
        before: The few turns before it.
    """
    if isinstance(record, Episode):
        claims = _said(record, text, before) if is_talk(record) else []
    elif record.resource_type != "conversation":
        claims = claims_of_document(Passage(record.id, text))
    elif record.chars:
        claims = _sentences(text)
    else:
        return []  # its turns are episodes
    trusts = {ANSWER: before[-1].trust} if before else {}  # of the words of a question, too
    places = [(claim.start, claim.end) for claim in claims]
    said = zip(as_said(record, text, places), claims, places, strict=True)
    items = [
        item_of(each, claim.text, place, claim.rule, lowest(each.trust, trusts.get(claim.rule, each.trust)))
        for each, claim, place in reversed([*said])
    ]
    return list({item["id"]: item for item in items}.values())[::-1]


def as_said(record: Resource | Episode, text: str, places: Sequence[tuple[int, int]]) -> list[Resource | Episode]:
    """Return for some places of a text the record with the trust of the words there.

    What a user pasted in a live session is no word of theirs: it counts as what a file says.
    """
    if not isinstance(record, Episode) or record.trust != "high" or record.source.kind != "user" or not places:
        return [record] * len(places)
    typed = " ".join(typed_part(text).split())
    pasted = record.model_copy(update={"trust": "medium"})
    return [record if " ".join(text[slice(*place)].split()) in typed else pasted for place in places]


def is_forgotten(item: Mapping[str, Any], never: Collection[str]) -> bool:
    """Tell whether somebody forgot what an item says, from a source that was trusted as much or more."""
    if not never:
        return False
    own = _TRUSTS.index(item["trust"])
    return any(_id_of({**item, "trust": trust}) in never for trust in _TRUSTS[own:])


def taken_back(record: Episode, text: str, before: Sequence[Episode]) -> Episode | None:
    """Return the turn of which the last statement is withdrawn where a turn begins ("scratch that"); None for none."""
    if not is_talk(record) or not WITHDRAWS.match(text.lstrip()):
        return None
    same = (one for one in reversed(before[-2:]) if (one.speaker, one.role) == (record.speaker, record.role))
    return next(same, None)


def withdrawal(record: Episode, text: str, older: str, trust: Trust) -> dict[str, Any]:
    """Return the item that says that a statement was taken back, where nothing is said in its place.

    Args:
        record: The turn that takes it back.
        text: All of its text.
        older: The statement, which the item quotes.
        trust: Of the statement: the item is trusted no more.
    """
    start = len(text) - len(text.lstrip())
    words = WITHDRAWS.match(text, start)
    end = max(start + 1, len(text[: words.end() if words else len(text)].rstrip()))
    name = record.speaker or record.role
    content = f'{name}: takes back: "{older.removeprefix(f"{name}: ")[:_MOST_TAKEN_BACK]}"'
    return item_of(record, content, (start, end), WITHDRAWN, lowest(record.trust, trust))


def item_of(
    record: Resource | Episode, content: str, at: tuple[int, int], rule: str, trust: Trust | None = None
) -> dict[str, Any]:
    """Return an item of a record as fields of a memory; of the trust of the record where none is given."""
    values: dict[str, Any] = {
        "content": content,
        "observed_at": to_text(record.observed_at or record.timestamp),
        "source": {"kind": "extraction", "detail": rule},
        "trust": trust or record.trust,
        "links": [{"rel": FROM, "id": record.id}],
        "metadata": {"at": [*at]},
        "group": record.group,
    }
    if isinstance(record, Episode):
        values["metadata"]["speaker"] = record.speaker or _speaker_of(record)
    return {"id": _id_of(values), **values}


def _speaker_of(record: Episode) -> str:
    """Return who spoke in a turn without a name: of the agent's own sessions it is the agent."""
    if record.role == "assistant" and record.source.kind == "assistant":
        return record.agent_id
    return "an unknown speaker" if record.role in {PERSON, UNKNOWN} else f"the {record.role}"


def is_as_drawn(item: Memory) -> bool:
    """Tell whether an item still says what was drawn, rather than what somebody made of it."""
    sources = sources_of(item)
    return item.id == _own_id(item) or any(item.id == _first_id(source, item.content) for source in sources)


def says_the_same(item: Memory, other: Mapping[str, Any]) -> bool:
    """Tell whether an item that was stored says what a drawn one does, for whichever sources."""
    return item.id == other["id"] or (PART in item.metadata and _base_id(item) == _id_of(other))


def sources_of(item: Memory) -> list[str]:
    """Return the ids of all that an item was drawn from."""
    return [link.id for link in item.links if link.rel == FROM]


def with_sources(item: Memory, other: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the changes that give an item the sources of another one that says the same, and what finds no room.

    Args:
        item: As it is stored.
        other: As `joined` returns it.

    Returns:
        No changes where it has them all; for each source without room an item, for `joined`.
    """
    links, also = [link.model_dump() for link in item.links], _also(item.metadata)
    left: list[dict[str, Any]] = []
    for one in _each_source(other):
        link = one["links"][0]
        if link["id"] in {each["id"] for each in links}:
            continue
        if len(links) >= MOST_LINKS:
            left.append(one)
            continue
        links.append(link)
        also[link["id"]] = one["metadata"]["at"]
    if len(links) == len(item.links):
        return {}, left
    return {"links": links, "metadata": {**item.metadata, ALSO: also}}, left


def with_link(item: Memory, link: Mapping[str, str], at: object) -> dict[str, Any]:
    """Return the changes that give an item one source more, with the place of its words there, if that is known."""
    changes: dict[str, Any] = {"links": [*(each.model_dump() for each in item.links), dict(link)]}
    if at is not None:
        changes["metadata"] = {**item.metadata, ALSO: {**_also(item.metadata), link["id"]: at}}
    return changes


def without_sources(item: Memory, gone: Iterable[str]) -> dict[str, Any] | None:
    """Return the changes that take sources from an item; None where none would be left, so that it goes with them."""
    names = set(gone)
    sources = sources_of(item)
    left = [one for one in sources if one not in names]
    if not left:
        return None
    also = {one: place for one, place in _also(item.metadata).items() if one not in names}
    at = also.pop(left[0], None) if left[0] != sources[0] else item.metadata.get("at")
    own = {key: value for key, value in item.metadata.items() if key not in {ALSO, "at"}}
    own |= {key: value for key, value in (("at", at), (ALSO, also)) if value}
    return {
        "links": [link.model_dump() for link in item.links if link.rel != FROM or link.id not in names],
        "metadata": own,
    }


def joined(
    items: Iterable[Mapping[str, Any]], never: Collection[str] = (), full: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return items each once: what several sources say has them all, in as many items as have links for them.

    Args:
        items: As they were drawn.
        never: Ids that were forgotten: of the items behind the first one they are left out.
        full: Ids of items that are stored and have room for no source more.
    """
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        for one in _each_source(item):
            while not _has_room(found.get(one["id"]), one) or one["id"] in full:
                one = _next_part(one, never)  # noqa: PLW2901 - the same for the next item that says it
            known = found.get(one["id"])
            if known is None:
                found[one["id"]] = one
            elif one["links"][0] not in known["links"]:
                known["links"] = [*known["links"], *one["links"]]
                also = {**_also(known["metadata"]), one["links"][0]["id"]: one["metadata"]["at"]}
                known["metadata"] = {**known["metadata"], ALSO: also}
    return list(found.values())


def _each_source(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an item once for each of its sources."""
    also = _also(item["metadata"])
    own = {key: value for key, value in item["metadata"].items() if key != ALSO}
    return [
        {**item, "links": [link], "metadata": {**own, "at": also.get(link["id"], own["at"])}} for link in item["links"]
    ]


def _has_room(known: Mapping[str, Any] | None, one: Mapping[str, Any]) -> bool:
    return known is None or len(known["links"]) < MOST_LINKS or one["links"][0] in known["links"]


def _next_part(item: Mapping[str, Any], never: Collection[str]) -> dict[str, Any]:
    """Return an item as the next one that says the same, for sources that find no room in those before."""
    part, base = item["metadata"].get(PART, 1) + 1, _id_of(item)
    while _part_id(base, part) in never:
        part += 1
    own = {key: value for key, value in item.items() if key != "supersedes"}
    return {**own, "id": _part_id(base, part), "metadata": {**item["metadata"], PART: part}}


def place_of(item: Memory, source_id: str) -> tuple[int, int] | None:
    """Return where the words of an item stand in one of its sources."""
    at = _also(item.metadata).get(source_id, item.metadata.get("at"))
    match at:
        case [int(begin), int(end)]:
            return begin, end
    return None


def _said(turn: Episode, text: str, before: Sequence[Episode]) -> list[Claim]:
    passage = Passage(turn.id, text, turn.speaker or turn.role, turn.role)
    earlier = [Passage(one.id, one.content, one.speaker or one.role, one.role) for one in before[-BEFORE:]]
    if turn.speaker:  # people talk; without a name it is a user and an agent, whose orders are no courtesy
        found = [claim for _, claim in claims_of_talk([passage], earlier)]
        return [Claim(f"{turn.speaker}: {one.text}", one.start, one.end, one.rule) for one in found]
    answer = answer_of(passage, earlier)
    rest = [one for one in _told(passage) if answer is None or one.start >= answer.end]
    return rest if answer is None else [answer, *rest]


def _told(passage: Passage) -> list[Claim]:
    """Return what a turn of a user or an agent tells, a sentence each: not what an agent says of what it does next."""
    found: list[Claim] = []
    for claim in claims_of_document(passage, most_joined=0):
        quote = " ".join(passage.text[claim.start : claim.end].split())
        is_narrated = passage.role == "assistant" and _NARRATES.match(quote)
        is_nothing = is_narrated or quote.endswith(":") or KNOWS_NOT.fullmatch(quote)
        tells = statements.says_something(quote) and not is_nothing
        if claim.rule == ROW or tells or WITHDRAWS.match(quote):
            found.append(claim)
    return _without_withdrawn(found, passage.text)


def _without_withdrawn(claims: Iterable[Claim], text: str) -> list[Claim]:
    """Return claims without those that the next one takes back, and without the words that do so."""
    found: list[Claim] = []
    for one in claims:
        quote = text[one.start : one.end]
        words = WITHDRAWS.match(quote)
        if words and found and not mends(quote[words.end() :]):
            found.pop()
        if not words:
            found.append(one)
        elif WORD.search(quote, words.end()):
            found.append(replace(one, text=" ".join(quote[words.end() :].split())))
    return found


def _sentences(text: str) -> list[Claim]:
    """Return what a conversation tells that came in as one text, with who said it."""
    found = [
        Claim(one.text, one.start, one.end, statements.RULE) for one in statements.statements_of(text, is_talk=True)
    ]
    return _without_withdrawn(found, text)


def _id_of(values: Mapping[str, Any]) -> str:
    """Return the id of an item: of what it says but for capitals, articles, and signs around words."""
    words = (word.strip(_AROUND) or word for word in values["content"].casefold().split())
    said = " ".join(word for word in words if word not in _SAYS_NOTHING)
    is_turn = values["links"][0]["id"].startswith(EPISODE.prefix)
    day = values["observed_at"][:10] if is_turn or is_of_a_time(values["content"]) else ""
    return derived_id(
        MEMORY.prefix, STAGE, values["group"], values["trust"], day, hashlib.sha256(said.encode()).hexdigest()
    )


def _base_id(item: Memory) -> str:
    """Return the id of the first item that says what this one does."""
    values = item.model_dump(mode="json")
    values["observed_at"] = to_text(item.observed_at or item.timestamp)
    return _id_of(values)


def _own_id(item: Memory) -> str:
    """Return the id that an item has as long as it says what was drawn."""
    base, part = _base_id(item), item.metadata.get(PART)
    return base if part is None else _part_id(base, part)


def _part_id(base: str, part: object) -> str:
    return derived_id(MEMORY.prefix, STAGE, base, part)


def _first_id(source_id: str, content: str) -> str:
    """Return the id that the first version of the stage gave: of the source and the very words."""
    return derived_id(MEMORY.prefix, STAGE, source_id, hashlib.sha256(content.encode()).hexdigest())


def _also(metadata: Mapping[str, Any]) -> dict[str, Any]:
    also = metadata.get(ALSO)
    return dict(also) if isinstance(also, dict) else {}
