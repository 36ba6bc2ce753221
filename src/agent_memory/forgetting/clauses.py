"""What one memory says, clause by clause, and its text without some of them. Pure; English by structure.

"Lea drives a red van and is allergic to nuts" is two clauses with one subject; "Lea likes tea, coffee and milk" one
with three items. Each of these is a unit that can be taken out; what is left is put together again with the subject and
the verb it hung on. What stands under a denial keeps it: "does not eat nuts or fish" without the nuts is "does not eat
fish", and "eats fish but not nuts" without the fish is "does not eat nuts". Where that cannot be done, the text is one
unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.lexicon import (
    AUXILIARIES,
    DENIALS,
    PREPOSITIONS,
    PRONOUNS,
    base_of,
    is_base_verb,
    is_known_verb,
)
from agent_memory.forgetting.pieces import pieces_of
from agent_memory.forgetting.verbs import ADVERBS, CONTRACTED, bare_of, verb_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_SENTENCE: Final = re.compile(
    r"(?:(?<=[.!?\u2026])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|No|no)\.)(?<!\bMrs\.)\s+|;\s+|\n+\s*)"
)
_TOKEN: Final = re.compile(r"\S+")
_LEADING: Final = PREPOSITIONS | {"after", "before", "when", "while", "if", "since", "until", "as", "once"}
_PLURAL: Final = frozenset(["i", "we", "you", "they"])
_OF_ANOTHER: Final = PRONOUNS - {"i", "we", "you", "our", "your"}


_RELATIVE: Final = re.compile(r"(?P<subject>[^,]+), who (?P<said>[^,]+), (?P<rest>.+)", re.DOTALL)
_ASIDE: Final = re.compile(
    r"(?P<subject>[^()]+?) \((?=[^()]*\) [^()]+\Z)(?P<said>[^()]*[^\W\d_]{2}[^()]*)\) (?P<rest>[^()]+)", re.DOTALL
)
_OF_A_KIND: Final = re.compile(
    r"(?P<main>(?P<subject>[^,]{1,300}?) (?:is|was|am) (?:an?|the) [^,]{1,300}?)"
    r",? who (?P<said>(?:has|is|was|had|\w+s|\w+ed) .+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Unit:
    """A piece that can be taken out by itself.

    Attributes:
        number: Its place in the memory.
        text: What it says by itself, with the subject and the verb that it hangs on.
        own: Its own words.
        subject: Whom or what it is about, as far as the structure tells; its own words or those it shares.
    """

    number: int
    text: str
    own: str
    subject: str


@dataclass
class _Clause:
    """A clause: `prefix` and `suffix` around one or more items; `subject` is part of the prefix of the first."""

    subject: str
    prefix: str
    items: list[str]
    suffix: str = ""
    joins: list[str] = field(default_factory=list)
    before: str = ""
    """What joins it to the clause before it."""
    is_whole: bool = True
    """Whether it has a subject of its own."""
    alone: str = ""
    """What it says by itself, where it leaves out the verb of the clause before it."""

    def text(self, kept: Collection[int], *, whole: bool) -> str:
        """Return it with some items; `whole` with a subject even where it shares one."""
        chosen = [at for at in range(len(self.items)) if at in kept]
        middle = ""
        for place, at in enumerate(chosen):
            if place:
                last = place == len(chosen) - 1
                join = self.joins[at - 1] if chosen[place - 1] == at - 1 else None
                middle += join or (self._conjunction() if last else ", ")
                if join == ", " and last:
                    middle = middle.removesuffix(", ") + self._conjunction()
            middle += self.items[at]
        said = " ".join(part for part in (self.prefix, middle, self.suffix) if part)
        if whole and self.alone:
            return self.alone
        if whole and not self.is_whole and self.subject:
            return f"{self.subject} {said}"
        return said

    def _conjunction(self) -> str:
        return next((join.lstrip(",") for join in reversed(self.joins) if join.strip(" ,")), " and ")


@dataclass
class _Sentence:
    text: str
    clauses: list[_Clause]
    end: str
    gap: str
    """What stands between it and the next one."""


class Clauses:
    """The units of a memory's text.

    Attributes:
        units: In their order.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._sentences = _sentences(text)
        self.units = [
            Unit(number, clause.text({at}, whole=True), clause.items[at], clause.subject)
            for number, (clause, at) in enumerate(self._places())
        ]

    def _places(self) -> Iterator[tuple[_Clause, int]]:
        for sentence in self._sentences:
            for clause in sentence.clauses:
                for at in range(len(clause.items)):
                    yield clause, at

    def without(self, gone: Collection[int]) -> str:
        """Return the text without some units; empty when nothing is left."""
        if not gone:
            return self._text
        number, said, gap = 0, "", ""
        antecedent = ""
        for sentence in self._sentences:
            kept: list[tuple[_Clause, list[int]]] = []
            is_cut = False
            for clause in sentence.clauses:
                own = range(number, number + len(clause.items))
                number += len(clause.items)
                left = [at for at, each in enumerate(own) if each not in gone]
                is_cut = is_cut or len(left) < len(clause.items)
                if left:
                    kept.append((clause, left))
                elif clause.subject and clause.is_whole and _may_be_named(clause.subject):
                    antecedent = clause.subject
            if not kept:
                continue
            rest = _sentence_text(kept) if is_cut else sentence.text
            first = kept[0][0]
            if antecedent and first.is_whole and _is_pronoun(first.subject):
                rest = _named(rest, first.subject, antecedent)
            elif first.is_whole and not _is_pronoun(first.subject):
                antecedent = ""
            said += (gap or " ") if said else ""
            said += (rest if ";" in gap else _capital(rest)) + (
                sentence.end or ("." if is_cut and self._text.endswith(".") else "")
            )
            gap = sentence.gap
        return said.strip()


def _sentence_text(kept: list[tuple[_Clause, list[int]]]) -> str:
    said, subject = "", None
    for clause, left in kept:
        if not said:
            said, subject = clause.text(left, whole=True), clause.subject
        elif not clause.is_whole and clause.subject != subject:
            said += f" and {clause.text(left, whole=True)}"
        else:
            join = clause.before or " and "
            said += " and " if join.strip() in {",", "but", ", but"} and len(kept) == 2 and "," in join else join  # noqa: PLR2004
            said += clause.text(left, whole=False)
    return said


def _named(text: str, pronoun: str, name: str) -> str:
    """Put a name for the pronoun a text begins with."""
    rest = text[len(pronoun) :]
    owning = {"her", "his", "their", "its"}
    head, _, behind = pronoun.partition(" ")
    if head.lower() in owning:
        owner = (
            name
            if re.search(r"['\u2019]s\b", name) is None
            else name.split("'", maxsplit=1)[0].split("\u2019", maxsplit=1)[0]
        )
        return f"{owner}'s {behind}{rest}" if behind else f"{owner}'s{rest}"
    return f"{name}{rest}"


def _may_be_named(subject: str) -> bool:
    """Tell whether a subject can stand for "it" or "her" behind it: "we" and "I no longer" cannot."""
    return not _is_pronoun(subject) and bare_of(subject.split(" ", maxsplit=1)[0]) not in _PLURAL


def _is_pronoun(subject: str) -> bool:
    return subject.split(" ", maxsplit=1)[0].lower() in _OF_ANOTHER


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:1].islower() else text


def _sentences(text: str) -> list[_Sentence]:
    found: list[_Sentence] = []
    behind = 0
    for match in [*_SENTENCE.finditer(text), None]:
        end = len(text) if match is None else match.start()
        piece = text[behind:end].strip()
        if piece:
            bare = piece.rstrip(".!?\u2026")
            found.append(_Sentence(bare, _clauses(bare), piece[len(bare) :], "" if match is None else match[0]))
        behind = end if match is None else match.end()
    return found


def _clauses(text: str) -> list[_Clause]:
    if (inserted := _inserted(text)) is not None:
        return inserted
    pieces, joins = pieces_of(text)
    verbs = [verb_at(piece, is_first=at == 0) for at, piece in enumerate(pieces)]
    if verbs[0] is None:
        return _of_subjects(text, pieces, joins, verbs)
    found: list[_Clause] = []
    for at, piece in enumerate(pieces):
        verb, words = verbs[at], piece.split()
        if verb is not None and at and _is_under(found[-1], words, verb):
            verb = None  # "does not eat nuts or drink milk": both hang on "does not"
        if at and bare_of(words[0]) == "not" and (denied := _denied(found[-1], words[1:], joins[at - 1])) is not None:
            found.append(denied)
            continue
        if verb is None and at and (gapped := _gapped(found[-1], words, joins[at - 1])) is not None:
            found.append(gapped)
            continue
        if verb is None and at:
            if not _add_item(found[-1], piece, joins[at - 1]):
                return [_Clause(found[0].subject, "", [text])]
            continue
        verb = _verb_behind(found[-1].subject if found else "", words, verb)
        own = _subject_end(words, verb or 0)
        subject = " ".join(words[:own])
        if contracted := CONTRACTED.fullmatch(bare_of(words[verb or 0])):
            subject = " ".join([*words[:own], words[verb or 0][: len(contracted[1])]])
        before = joins[at - 1] if at else ""
        shared = found[-1].subject if found else ""
        found.append(_Clause(subject or shared, "", [piece], before=before, is_whole=bool(subject) or not at))
    return found


def _inserted(text: str) -> list[_Clause] | None:
    """Return the clauses of a sentence with a relative clause or an aside in brackets; None where it has none."""
    if (match := _RELATIVE.fullmatch(text)) or (match := _OF_A_KIND.fullmatch(text)):
        parts = match.groupdict()
        main = parts.get("main") or f"{parts['subject']} {parts['rest']}"
        said = _Clause(parts["subject"], "", [parts["said"]], before=" and ", is_whole=False)
        return [*_clauses(main), said]
    if match := _ASIDE.fullmatch(text):
        said = _Clause(match["subject"], "", [f"({match['said']})"], before=" ", is_whole=False)
        return [*_clauses(f"{match['subject']} {match['rest']}"), said]
    return None


def _verb_behind(subject: str, words: list[str], verb: int | None) -> int | None:
    """Return which word of a piece is its verb where the subject before it cannot have that: "we" no "logs go"."""
    if verb or len(words) < 2 or not subject or bare_of(subject.split(maxsplit=1)[0]) not in _PLURAL:  # noqa: PLR2004
        return verb
    first = bare_of(words[0])
    is_third = verb == 0 and first.endswith("s") and first not in AUXILIARIES and not is_base_verb(first)
    return 1 if is_third and is_base_verb(bare_of(words[1])) else verb


def _subject_end(words: list[str], verb: int) -> int:
    end = verb
    while end and bare_of(words[end - 1]) in ADVERBS:
        end -= 1
    return end


def _gapped(clause: _Clause, words: list[str], join: str) -> _Clause | None:
    """Return a clause that leaves out the verb of the one before it ("..., and production on port 9090"), or None."""
    said = clause.text(range(len(clause.items)), whole=True).split()
    verb = verb_at(" ".join(said))
    if verb is None or len(words) < 2:  # noqa: PLR2004
        return None
    bare = [bare_of(word) for word in words]
    own = re.compile(r".+['\u2019]s\Z")
    if own.match(words[0]) and own.match(said[0]) and verb > 1:  # "Ann's badge is 12 and Bob's 13"
        alone = [words[0], *said[1 : verb + 1], *words[1:]]
        return _Clause(" ".join(alone[:verb]), "", [" ".join(words)], before=join, alone=" ".join(alone))
    at = next((place for place, word in enumerate(bare) if word in PREPOSITIONS), 0)
    if at and verb + 1 < len(said) and bare_of(said[verb + 1]) == bare[at]:
        alone = [*words[:at], said[verb], *words[at:]]
        return _Clause(" ".join(words[:at]), "", [" ".join(words)], before=join, alone=" ".join(alone))
    return None


def _denied(clause: _Clause, words: list[str], join: str) -> _Clause | None:
    """Return what is denied behind what is stated ("..., but not dogs") as a clause that says it by itself, or None."""
    said = clause.text(range(len(clause.items)), whole=True)
    verb = verb_at(said)
    if verb is None or not words or len(clause.items) > 1:
        return None
    head, _ = _head_and_item(said, " ".join(words), is_whole=True)
    led, rest = head.split(), words
    if bare_of(rest[0]) in PREPOSITIONS and bare_of(led[-1]) in PREPOSITIONS:
        led = led[:-1]
    if verb >= len(led):
        return None
    form = bare_of(led[verb])
    if form in AUXILIARIES:
        denial = [led[verb], "not"]
    else:
        base = base_of(form)
        denial = [*(["does", "not"] if base != form else ["do", "not"]), base]
    alone = " ".join([*led[:verb], *denial, *led[verb + 1 :], *rest])
    return _Clause(clause.subject, "", [" ".join(["not", *words])], before=join, alone=alone)


def _is_under(clause: _Clause, words: list[str], verb: int) -> bool:
    """Tell whether a piece that begins with a bare verb hangs on the auxiliary of the clause before it."""
    if verb != 0 or len(words) == 1 or not is_base_verb(bare_of(words[0])):
        return False
    said = clause.text(range(len(clause.items)), whole=False).split()
    at = verb_at(" ".join(said), is_first=clause.is_whole)
    return at is not None and bare_of(said[at]) in AUXILIARIES


def _add_item(clause: _Clause, piece: str, join: str) -> bool:
    """Make a piece without a verb another item of a clause; False where a denial stands between them."""
    first = bare_of(piece.split(maxsplit=1)[0])
    if first in DENIALS:
        return False
    if len(clause.items) == 1 and not clause.prefix:
        head, item = _head_and_item(clause.items[0], piece, is_whole=clause.is_whole)
        clause.prefix, clause.items = head, [item]
    clause.items.append(piece)
    clause.joins.append(join)
    return True


def _head_and_item(said: str, other: str, *, is_whole: bool) -> tuple[str, str]:
    """Split a clause before the item that `other` goes on with."""
    words = said.split()
    verb = verb_at(said, is_first=is_whole) or 0
    begin = verb + 1
    bare = [bare_of(word) for word in words]
    while begin < len(words) and (bare[begin] in DENIALS or bare[begin] in ADVERBS):
        begin += 1
    others = [bare_of(word) for word in other.split()]
    if len(others) > 1 and is_base_verb(others[0]) and bare[verb] in AUXILIARIES:
        return " ".join(words[:begin]), " ".join(words[begin:])
    if bare[verb] in AUXILIARIES and begin < len(words) - 1 and is_known_verb(bare[begin]):
        begin += 1
    leads = [at for at in range(begin, len(words) - 1) if bare[at] in PREPOSITIONS]
    if leads and not any(word in PREPOSITIONS for word in others):
        begin = leads[-1] + 1
    elif leads and others[0] in PREPOSITIONS:
        begin = next((at for at in leads if bare[at] == others[0]), leads[0])
    if begin >= len(words):
        begin = len(words) - 1
    return " ".join(words[:begin]), " ".join(words[begin:])


def _of_subjects(text: str, pieces: list[str], joins: list[str], verbs: list[int | None]) -> list[_Clause]:
    """Return one clause about several subjects ("Ann and Bob live in Paris"), or the text as one unit."""
    at = next((place for place, verb in enumerate(verbs) if verb is not None), None)
    if at is None:
        if len(pieces) > 1 and ":" in pieces[0]:
            head, _, item = pieces[0].partition(":")
            return [_Clause(head, f"{head}:", [item.strip(), *pieces[1:]], joins=joins)]
        return [_Clause("", "", [text])]
    words, verb = pieces[at].split(), verbs[at] or 0
    subjects = [*pieces[:at], " ".join(words[:verb])]
    if not verb or not all(_may_be_one_of_several(subject) for subject in subjects):
        return [_Clause(" ".join(words[:verb]), "", [text])]
    behind = joins[at] if at < len(joins) else ""
    rest = " ".join(words[verb:]) + (text[_end_of(text, pieces[: at + 1], joins) :] if behind else "")
    return [_Clause("", "", subjects, rest, joins[:at])]


def _may_be_one_of_several(subject: str) -> bool:
    """Tell whether a piece is a name or two: "After moving to Oslo" is no subject."""
    words = subject.split()
    return bool(words) and words[0][0].isupper() and len(words) <= 3 and bare_of(words[0]) not in _LEADING  # noqa: PLR2004


def _end_of(text: str, pieces: list[str], joins: list[str]) -> int:
    return min(len(text), sum(map(len, pieces)) + sum(map(len, joins[: len(pieces) - 1])))
