"""Of what kind a name is: by what is known of it, by titles and endings, else by a small statistical model. Pure."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, get_args

from agent_memory.entities.features import class_of
from agent_memory.entities.mention import Kind
from agent_memory.entities.tagger import NAMED_LISTS, word_lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.entities.features import WordLists

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LEARNT: Final[tuple[Kind, ...]] = ("person", "place", "organisation", "product", "other")
_TITLES_WORDS: Final = """
    mr mrs ms dr prof sir miss herr frau se\u00f1or se\u00f1ora monsieur madame mme professor doctor
"""
_TITLES: Final = frozenset(_TITLES_WORDS.split())
_FIRMS_WORDS: Final = """
    inc inc. ab oy asa sarl corp corp. corporation ltd ltd. llc plc gmbh ag co. company university college institute
    hospital bank school clinic foundation association committee council ministry department agency club fc society
    union church airlines labs laboratories studios partners group holdings technologies systems solutions
    industries team squad guild bakery restaurant hotel museum library
"""
_FIRMS: Final = frozenset(_FIRMS_WORDS.split())
_PLACES_WORDS: Final = """
    street st road avenue ave boulevard blvd park river lake city county airport station beach bridge island islands
    mountain mountains valley square harbour harbor bay hill hills forest district province state republic coast
    village town warehouse plaza stadium
"""
_PLACES: Final = frozenset(_PLACES_WORDS.split())
_HUMPED: Final = re.compile(r"(?!Mc|Mac|De|La|Le|Di|Fitz|O[A-Z])[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]+)+|[a-z]{1,2}[A-Z]\w+")
_AT: Final = frozenset({"at", "for", "with"})
_WORKING: Final = frozenset(
    {"work", "works", "working", "worked", "employed", "job", "interned", "contract", "customer"}
)
_PAIR: Final = 2
_PRODUCT: Final = re.compile(r"[a-z][A-Z]|\d|\+\+|\.(?:js|io|ai)$")


def kind_of(words: Sequence[str], start: int, end: int) -> Kind:
    """Return the kind of the name that is `words[start:end]` of a sentence."""
    told = _by_place(words, start, end) or _by_ending(words, start, end) or _listed(words, start, end)
    if told is not None:
        return told
    if end - start == 1 and _HUMPED.fullmatch(words[start]):
        return "product"
    weights = _weights()
    totals = [0.0] * len(LEARNT)
    for feature in kind_features(words, start, end, word_lists()):
        for at, weight in enumerate(weights.get(feature, ())):
            totals[at] += weight
    return LEARNT[max(range(len(LEARNT)), key=totals.__getitem__)]


def _by_place(words: Sequence[str], start: int, end: int) -> Kind | None:
    """Return the kind that the words before a name leave no doubt of: a title, "works at"."""
    before = [word.lower() for word in words[max(0, start - 3) : start] if word != "."]
    if words[start].lower() in _TITLES or (before and before[-1] in _TITLES):
        return "person"
    is_firm = len(before) > 1 and before[-1] in _AT and before[-2] in _WORKING
    return "organisation" if is_firm and words[end - 1].lower() not in _PLACES else None


def _by_ending(words: Sequence[str], start: int, end: int) -> Kind | None:
    last = words[end - 1].lower()
    if last in _FIRMS:
        return "organisation"
    return "place" if last in _PLACES and end - start > 1 else None


def _listed(words: Sequence[str], start: int, end: int) -> Kind | None:
    """Return the kind that lists of names leave no doubt of."""
    names = word_lists().names
    small = [word.lower() for word in words[start:end]]
    whole = " ".join(small)
    is_given = small[0] in names["given"]
    if (whole in names["city"] or whole in names["country"]) and not is_given:
        return "place"
    return "person" if is_full_name(words[start:end]) else None


def is_full_name(words: Sequence[str]) -> bool:
    """Whether two words are a listed given name and what is a family name, or no word in use."""
    names = word_lists().names
    small = [word.lower() for word in words]
    is_rare = small[-1] in names["family"] or small[-1] not in word_lists().frequency
    return len(small) == _PAIR and small[0] in names["given"] and is_rare and " ".join(small) not in names["city"]


def kind_features(words: Sequence[str], start: int, end: int, lists: WordLists) -> list[str]:
    """Return what a name looks like and stands beside, for training and for use."""
    name = [word.lower() for word in words[start:end]]
    found = [
        "b",
        f"n={min(len(name), 4)}",
        f"first={name[0]}",
        f"last={name[-1]}",
        f"x3={name[-1][-3:]}",
        f"x2={name[-1][-2:]}",
    ]
    whole = " ".join(name)
    for each in NAMED_LISTS:
        known = lists.names[each]
        if whole in known:
            found.append(f"is={each}")
        found += [f"{mark}in={each}" for mark, word in (("f", name[0]), ("l", name[-1])) if word in known]
    for word in name:
        found += [f"w={word}", *_class_features("c", class_of(word, lists))]
    found += _class_features("cf", class_of(name[0], lists)) + _class_features("cl", class_of(name[-1], lists))
    joined = " ".join(words[start:end])
    if _PRODUCT.search(joined):
        found.append("marked")
    if joined.isupper():
        found.append(f"upper{min(len(joined), 6)}")
    if words[start][:1] == "#":
        found.append("tag")
    for mark, at in (("<", start - 1), ("<<", start - 2), (">", end), (">>", end + 1)):
        word = words[at].lower() if 0 <= at < len(words) else ""
        found += [f"{mark}{word}", *_class_features(mark + "c", class_of(word, lists))]
    return found


def _class_features(mark: str, path: str) -> list[str]:
    return [f"{mark}{size}={path[:size]}" for size in (4, 6, 8, 12)] if path else []


@cache
def _weights() -> Mapping[str, Sequence[float]]:
    read = json.loads(gzip.decompress((files(__package__) / "data" / "kinds.json.gz").read_bytes()))
    return {feature: [weight / 100 for weight in row] for feature, row in read.items()}
