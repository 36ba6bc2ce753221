"""Claims of a talk: what each turn states, without questions, greetings, thanks and what only answers with approval.

Of each turn those clauses stay that are worth their characters (`telling`), the best one of a turn more easily than
others. The rules are for English and German; a sentence in which hardly a word of these is common is kept unless it
asks.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.items.extraction.claims import Claim
from agent_memory.knowledge.items.extraction.clauses import Clause, clauses_of
from agent_memory.knowledge.items.extraction.common import is_common
from agent_memory.knowledge.items.extraction.condensing import EXCLAIMS, WITHDRAWS, WORD, bare, condensed, mends
from agent_memory.knowledge.items.extraction.sentences import spans_of
from agent_memory.knowledge.items.extraction.telling import (
    APPROVAL,
    ASKS,
    KNOWS_NOT,
    OTHERS,
    OWN,
    THANKS,
    Situation,
    names,
    worth,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from agent_memory.knowledge.items.extraction.claims import Passage

SAID: Final = "talk"
ANSWER: Final = "answer"
BEFORE: Final = 4
"""Turns before one that tell how it is meant: what it answers, whom it speaks to, what is new in it."""

_LATELY: Final = 3
_MOST_JOINED: Final = 300
"""Characters up to which what follows each other is one claim."""
_SHORT_ANSWER: Final = 10
"""Words up to which an answer stands with its question."""
_BRIEF: Final = 6
"""Words up to which the sentence behind a question answers it, whatever it is worth."""
_MOST_ASKED: Final = 160
"""Characters of a question that stands before its answer."""
_FLOOR: Final = 0.02
"""What a clause must be worth."""
_OF_BEST: Final = 0.4
"""What the best clause of a turn is worth besides."""
_MOST_COURTESY: Final = 4
_ENDS: Final = ".!?\u2026\u3002\uff01\uff1f]\"'"
_LEAST_TELLING: Final = 2

WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
"""Writing without spaces between words: what it tells is not counted."""


class _Seen(NamedTuple):
    """A clause, what it is worth, and whether it may be kept at all."""

    clause: Clause
    worth: float
    states: bool


def claims_of_talk(passages: Sequence[Passage], before: Sequence[Passage] = ()) -> list[tuple[Passage, Claim]]:
    """Return what is stated, in order.

    Args:
        passages: Turns of one conversation.
        before: The few turns before them; of these nothing is returned.
    """
    found: list[tuple[Passage, Claim]] = []
    turns = [*before, *passages]
    for number, passage in enumerate(turns):
        earlier = turns[max(0, number - BEFORE) : number]
        if found and _takes_back(passage, found[-1][0], earlier[-2:]):
            found.pop()
        if number >= len(before):
            found += [(passage, claim) for claim in _claims(passage, earlier)]
    return found


def answer_of(passage: Passage, earlier: Sequence[Passage]) -> Claim | None:
    """Return the short answer with which a turn begins, together with its question; None where there is none.

    Args:
        passage: The turn.
        earlier: The few turns before it.
    """
    asked = _question_of(earlier[-1]) if earlier and earlier[-1].speaker != passage.speaker else ""
    if not asked:
        return None
    for start, end in spans_of(passage.text):
        said = passage.text[start:end]
        is_short = 0 < len(WORD.findall(said)) <= _SHORT_ANSWER and not KNOWS_NOT.fullmatch(said)
        if is_short and not (ASKS.search(said) or THANKS.match(said) or OTHERS.search(said) or WITHDRAWS.match(said)):
            return Claim(_join_answer(earlier[-1], asked, said), start, end, ANSWER, speaker=passage.speaker)
        return None
    return None


def _join_answer(asker: Passage, question: str, said: str) -> str:
    """Return an answer behind its question, with who asked: who answers did not say that."""
    who = "asked" if asker.speaker == asker.role else f"{asker.speaker} asks"
    return f"({who}: {question}) {said}"


def _takes_back(passage: Passage, earlier: Passage, lately: Sequence[Passage]) -> bool:
    """Tell whether a turn begins by withdrawing what the same person said just before."""
    same = passage.speaker == earlier.speaker and any(one.id == earlier.id for one in lately)
    return same and WITHDRAWS.match(passage.text.lstrip()) is not None


def _claims(passage: Passage, earlier: Sequence[Passage]) -> Iterator[Claim]:
    asked = _asked_before(passage, earlier)
    situation = situation_of(passage, earlier)
    others = situation.others
    for run in _runs(_kept(passage.text, situation)):
        start, end = run[0].start, run[-1].end
        said = _joined(passage.text, run, others)
        if (
            asked
            and start == _begin(passage.text)
            and not WITHDRAWS.match(passage.text, start)
            and len(WORD.findall(said)) <= _SHORT_ANSWER
        ):
            question = bare(asked, others) or asked
            yield Claim(
                _join_answer(earlier[-1], f"{question[:1].upper()}{question[1:]}", said),
                start,
                end,
                ANSWER,
                speaker=passage.speaker,
            )
        else:
            yield Claim(said, start, end, SAID, speaker=passage.speaker)


def situation_of(passage: Passage, earlier: Sequence[Passage]) -> Situation:
    """Return in what the sentences of a turn stand, given the few turns before it."""
    others = {name.casefold() for one in (*earlier, passage) for name in WORD.findall(one.speaker)}
    lately = {word.casefold() for one in earlier[-_LATELY:] for word in WORD.findall(one.text)}
    is_asked = _is_asked(passage, earlier)
    return Situation(others, lately, is_asked, is_answer=bool(_asked_before(passage, earlier)))


def _asked_before(passage: Passage, earlier: Sequence[Passage]) -> str:
    """Return the question of somebody else with which the turn before ends; empty where there is none."""
    return _question_of(earlier[-1]) if earlier and earlier[-1].speaker != passage.speaker else ""


def _is_asked(passage: Passage, earlier: Sequence[Passage]) -> bool:
    """Tell whether the last turn of somebody else asks anything."""
    turn = next((one.text for one in reversed(earlier) if one.speaker != passage.speaker), "")
    return any(ASKS.search(turn[start:end]) for start, end in spans_of(turn))


def _kept(text: str, situation: Situation) -> list[Clause]:
    """Return the clauses that stay, in order."""
    seen = list(_looked_at(text, situation))
    best = max((each.worth for each in seen if each.states), default=0.0)
    stays = [each.states and each.worth + (_OF_BEST if each.worth >= best else 0) >= _FLOOR for each in seen]
    for number, each in enumerate(seen):
        if number and each.clause.is_tail and stays[number]:
            stays[number - 1] = True  # it says nothing without what stands before it
    return [each.clause for each, is_kept in zip(seen, stays, strict=True) if is_kept]


def _looked_at(text: str, situation: Situation) -> Iterator[_Seen]:
    seen: list[_Seen] = []
    for clause in clauses_of(text):
        said = text[clause.start : clause.end]
        if withdraws := WITHDRAWS.match(said):
            last = seen[-1].clause.sentence if seen else -1
            rest = said[withdraws.end() :]
            is_left = WORD.search(rest) is not None and not ASKS.search(rest)
            others = [each for each in seen if each.clause.sentence != last]
            mended = [each for each in seen if each.clause.sentence == last] if is_left and mends(rest) else []
            seen = [*others, *(_Seen(each.clause, math.inf, states=True) for each in mended)]
            seen.append(_Seen(clause, math.inf if is_left else 0, states=is_left))
        else:
            seen.append(_look(said, clause, situation))
    return iter(seen)


def _look(said: str, clause: Clause, situation: Situation) -> _Seen:
    here = replace(situation, is_answer=situation.is_answer and not clause.start, is_part=clause.is_part)
    core = bare(said, situation.others)
    if ASKS.search(said) or not WORD.search(said) or KNOWS_NOT.fullmatch(said):
        return _Seen(clause, 0, states=False)
    if WIDE.search(core):
        return _Seen(clause, math.inf, states=True)
    if not WORD.search(core) and EXCLAIMS.match(said):
        return _Seen(clause, 0, states=False)
    answers = here.is_answer and not (THANKS.match(said) or APPROVAL.match(core) or OTHERS.search(core))
    if not answers and is_courtesy(said, core, situation.others):
        return _Seen(clause, 0, states=False)
    if answers and 0 < len(WORD.findall(core)) <= _BRIEF:
        return _Seen(clause, math.inf, states=True)
    return _Seen(clause, worth(said, core, here), states=True)


def is_courtesy(sentence: str, core: str, others: Collection[str]) -> bool:
    """Tell whether a sentence thanks, greets, or approves and says nothing else."""
    own = WORD.findall(core)
    if not own:
        return True
    if any(map(str.isdigit, core)) or names(own, others):
        return False
    telling = sum(not is_common(word) for word in {one.casefold() for one in own})
    is_own = OWN.search(core) is not None
    if THANKS.match(core if not is_own else sentence) and (not is_own or len(own) <= _MOST_COURTESY):
        return True
    return telling < (1 if is_own and not APPROVAL.match(core) else _LEAST_TELLING)


def _runs(kept: Sequence[Clause]) -> Iterator[list[Clause]]:
    run: list[Clause] = []
    for clause in kept:
        is_long = run and clause.end - run[0].start > _MOST_JOINED and not clause.is_tail
        if run and (clause.sentence > run[-1].sentence + 1 or is_long):
            yield run
            run = []
        run.append(clause)
    if run:
        yield run


def _joined(text: str, run: Sequence[Clause], others: Collection[str]) -> str:
    """Return what some clauses say as one line; clauses of a sentence that follow each other stay as they are."""
    pieces: list[str] = []
    at = 0
    while at < len(run):
        last = at
        while last + 1 < len(run) and _follows(text, run[last], run[last + 1]):
            last += 1
        said = condensed(text[run[at].start : run[last].end], others).rstrip(" ,;\u2013\u2014-")
        if run[at].is_part:
            said = said[:1].upper() + said[1:]
        pieces.append(said if said[-1:] in _ENDS or last + 1 == len(run) else f"{said}.")
        at = last + 1
    return " ".join(pieces)


def _follows(text: str, one: Clause, other: Clause) -> bool:
    return WORD.search(text, one.end, other.start) is None and one.sentence == other.sentence


def _begin(text: str) -> int:
    return len(text) - len(text.lstrip())


def _question_of(passage: Passage) -> str:
    """Return the last question of a turn, if nothing is said behind it."""
    last = ""
    for start, end in spans_of(passage.text):
        if passage.text[start] != "[":
            last = passage.text[start:end]
    return " ".join(last.split()) if ASKS.search(last) and len(last) <= _MOST_ASKED else ""
