"""Whom and what items speak of, told by how it is written: names, @names, files, packages, hosts. Pure, no model.

A capitalised run counts as a name where it stands within a sentence, or where it begins one and is a name elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.tokens import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.knowledge.topics.items import TopicItem

LEAST_ITEMS: Final = 5
"""Items that speak of an entity before it has a page."""
MOST_PAGES: Final = 2
"""Entities under which one item is filed."""
MAX_NAME_CHARS: Final = 64
_SHORT_NAME: Final = 3
_MOST_IN_NAME: Final = 120
"""Characters in a row: a path or host is not longer, and looking for its parts takes time by the square of them."""
_LOOK_BACK: Final = 8

_ENDINGS: Final = "py|js|ts|tsx|rs|go|c|h|cpp|java|rb|sh|md|txt|toml|yaml|yml|json|sql|html|css|ini|cfg|lock|csv|env"
_MARK: Final = re.compile(
    r"(?P<handle>(?<![\w.])@[A-Za-z][\w-]{1,38})"
    rf"|(?P<file>(?<![\w/])(?:[\w.-]+/)*[\w-][\w.-]*\.(?:{_ENDINGS})\b(?!\.\w))"
    r"|(?P<host>\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|de|local|internal)\b)"
    r"|(?P<package>\b[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*-[a-z0-9]+\b(?=\s+(?:\d+\.|package|library|module|service)))"
)
_WORD: Final = r"[A-Z\u00c0-\u00de][\w\u00c0-\u024f]*(?:[-+.#&'\u2019][A-Z0-9\u00c0-\u00de]\w*)*\+{0,2}"
_RUN: Final = re.compile(rf"(?<![\w@/.-])({_WORD}(?:[ \t]+{_WORD})*)")
_BEGINS: Final = re.compile(r"(?:^|[.!?:;\u2026\"\u201c(\[\n*-])\s{0,8}$")
_ENDING: Final = re.compile(r"['\u2019][a-z]*$")
_SELF: Final = re.compile(r"\b(?:I|I'm|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|[Oo]ur)\b")
_NO_NAMES: Final = """
    i monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december mon tue wed thu fri sat sun today tomorrow yesterday yes yeah no ok okay
    thanks thank hey hi hello wow great sure sorry well oh haha lol please also but so and or not never god
    christmas thanksgiving let lets good nice cool awesome absolutely definitely glad congrats congratulations
    sounds bye later anyway actually by am pm
"""
_NONE: Final = frozenset(_NO_NAMES.split())
_PLAIN: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something with a page: its name as a topic, as it is written most, and the ids of the items that speak of it."""

    name: str
    title: str
    items: tuple[str, ...]


def entities_of(items: Sequence[TopicItem], named: Mapping[str, Sequence[str]] | None = None) -> list[Entity]:
    """Return entities that `LEAST_ITEMS` items name, most frequent first.

    Args:
        items: All items of the agent.
        named: Result of `mentions(items)`; read here when omitted.
    """
    named = mentions(items) if named is None else named
    forms: dict[str, Counter[str]] = {}
    holders: dict[str, list[str]] = {}
    for item in items:
        for form in named[item.id]:
            if name := topic_name(form):
                forms.setdefault(name, Counter())[form] += 1
                if item.id not in holders.setdefault(name, [])[-1:]:
                    holders[name].append(item.id)
    large = [(name, ids) for name, ids in holders.items() if len(ids) >= LEAST_ITEMS]
    large.sort(key=lambda name_and_ids: (-len(name_and_ids[1]), name_and_ids[0]))
    return [Entity(name, forms[name].most_common(1)[0][0], tuple(ids)) for name, ids in large]


def mentions(items: Sequence[TopicItem]) -> Mapping[str, list[str]]:
    """Return what each item speaks of, the most likely subject first, by the id of the item."""
    inside = Counter[str]()
    for item in items:
        for form, begins in _runs(item.text) if not item.is_document else ():
            inside[form.casefold()] += 0 if begins else 1
        if item.speaker:
            inside[item.speaker.casefold()] += 1
    speakers = sorted({item.speaker for item in items if item.speaker})
    return {item.id: _mentions(item, inside, speakers) for item in items}


def topic_name(form: str) -> str:
    """Return a name as topics have them, `project_tidewater`; empty where nothing is left of it."""
    name = _PLAIN.sub("_", form.casefold()).strip("_")[:MAX_NAME_CHARS].strip("_")
    return name if name[:1].isalpha() else f"n_{name}"[:MAX_NAME_CHARS].strip("_") if name else ""


def _mentions(item: TopicItem, inside: Mapping[str, int], speakers: Sequence[str]) -> list[str]:
    text = item.text
    label = f"{item.speaker}: "
    if item.speaker and text.startswith(label):
        text = text[len(label) :]
    short = " ".join(chunk for chunk in text.split() if len(chunk) <= _MOST_IN_NAME)
    found = [match[0] for match in _MARK.finditer(short)]
    runs = _runs(text) if not item.is_document else []  # of a document identifiers alone are names
    found += [form for form, begins in runs if not begins or inside.get(form.casefold(), 0)]
    spoken_to = {form for form in found if _addressed(form, text)}
    called = {form: _speaker(form, speakers) for form in found}
    found = [called[form] or form for form in found if not (called[form] and form in spoken_to)]
    speaker = [item.speaker] if item.speaker else []
    # What somebody says of themselves names others they speak to.
    ordered = [*speaker, *found] if _SELF.search(text) else [*found, *speaker]
    return list(dict.fromkeys(ordered))


def _speaker(form: str, speakers: Sequence[str]) -> str:
    """Return the speaker who is called so, by the whole name or its beginning; empty if it is none or several."""
    short = form.casefold()
    known = [name for name in speakers if name.casefold() == short]
    known = known or [name for name in speakers if len(form) >= _SHORT_NAME and name.casefold().startswith(short)]
    return known[0] if len(known) == 1 else ""


def _addressed(form: str, text: str) -> bool:
    """Whether a name is set apart by commas, as of whom one speaks to: "Thanks, Mel!"."""
    return re.search(rf"(?:^|[,.!?-]\s*){re.escape(form)}\s*(?:[,.!?-]|$)", text) is not None


def _runs(text: str) -> list[tuple[str, bool]]:
    """Return capitalised runs and whether each begins a sentence."""
    found = []
    for match in _RUN.finditer(text):
        words = [_ENDING.sub("", word) for word in match[1].split()]
        begins = _BEGINS.search(text, max(0, match.start() - _LOOK_BACK), match.start()) is not None
        while words and (words[0].casefold() in _NONE or words[0].casefold() in STOP_WORDS):
            words, begins = words[1:], False
        while words and words[-1].casefold() in _NONE:
            words.pop()
        if words and len("".join(words)) > 1:
            found.append((" ".join(words), begins))
    return found
