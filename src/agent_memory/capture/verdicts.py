"""Verdict on one sentence: rules, confidence, vetoes, cues such as "remember".

The words are in `patterns/`; rules with a `cue` are explicit. No neighbouring sentence is read. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_memory.capture.rules import CUSTOM, get_pattern
from agent_memory.capture.typed_text import blank_quotations, is_question
from agent_memory.language.sentences import CLAUSE_END, COLONS, find_breaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.capture.rules import CaptureRule, CaptureVeto, RuleSet
    from agent_memory.language.sentences import MessageSentence

    _Readings: TypeAlias = Sequence[tuple[RuleSet, str]]
    """Languages that apply, each with the sentence as it reads it."""
    from collections.abc import Iterator

_AGREEING_RULE_BONUS: Final = 0.04
_MAX_BONUS: Final = 0.08
_ASSISTANT_PENALTY: Final = 0.2
"""A model calls much a cause or a lesson; without a word of proof nearby such a sentence stays below the threshold."""

_CAUTIOUS: Final = frozenset(("bugfix", "discovery", "insight"))
_QUESTION: Final = "question"
_CERTAINTY: Final = "certain"
_NEVER_ASKED: Final = frozenset(("decision", "identity"))
_SPOKEN_AS_IS: Final = frozenset((CUSTOM, _QUESTION))
"""Groups of rules that may also hold in a question."""


@dataclass(slots=True)
class Verdict:
    """Verdict on one sentence."""

    sentence: MessageSentence
    rule: CaptureRule | None = None
    category: str = "note"
    confidence: float = 0.0
    veto: CaptureVeto | None = None
    doubtful: bool = False
    """True if a penalty applies: the sentence does not accompany a captured neighbour."""

    groups: frozenset[str] = field(default_factory=frozenset)
    cue: str = ""
    """Class of the user's explicit cue, or empty."""

    @property
    def is_hit(self) -> bool:
        """True if a rule matches and no veto forbids it.

        The extractor applies the threshold.
        """
        return self.rule is not None and self.veto is None


def find_rules(
    sentence: MessageSentence, rule_sets: Sequence[RuleSet], custom: Sequence[CaptureRule], speaker: str
) -> list[CaptureRule]:
    """Return the rules that match a sentence.

    Args:
        sentence: Sentence with masked text.
        rule_sets: Languages that apply.
        custom: The user's own rules.
        speaker: user, assistant or teammate.
    """
    readings = ((rule_set.rules, rule_set.read(sentence.masked)) for rule_set in rule_sets)
    return [
        rule
        for rules, text in (*readings, (custom, sentence.masked))
        for rule in rules
        if speaker in rule.sources and _matches(rule, text, speaker)
    ]


def judge(
    sentence: MessageSentence, matched: list[CaptureRule], rule_sets: Sequence[RuleSet], speaker: str, paragraph: str
) -> Verdict:
    """Return the verdict on `sentence`.

    Args:
        sentence: To be judged by its masked text.
        matched: Result of `find_rules`.
        rule_sets: Languages that apply.
        speaker: user, assistant or teammate.
        paragraph: Masked text of the whole paragraph, searched for words of proof.
    """
    readings = [(rule_set, rule_set.read(sentence.masked)) for rule_set in rule_sets]
    verdict = Verdict(sentence, groups=frozenset(rule.group for rule in matched if rule.group))
    cue = next((rule.cue for rule in matched if rule.cue), "") if speaker == "user" else ""
    verdict.veto = _veto(readings, verdict.groups, is_cue=bool(cue))
    if matched:
        _score(verdict, matched, readings, speaker, paragraph)
        verdict.cue = CUSTOM if CUSTOM in verdict.groups else "" if verdict.doubtful else cue
    else:
        verdict.doubtful = any(
            shift.weight < 0 and not shift.categories and shift.pattern.search(text)
            for rule_set, text in readings
            for shift in rule_set.shifts
        )
    return verdict


def _matches(rule: CaptureRule, text: str, speaker: str) -> bool:
    """Return True if a rule matches; a user has to state it."""
    if speaker == "user" and rule.group not in _SPOKEN_AS_IS:
        return is_stated(rule.pattern, text, may_be_asked=rule.cue not in _NEVER_ASKED)
    return rule.pattern.search(text) is not None


def _veto(readings: _Readings, groups: frozenset[str], *, is_cue: bool) -> CaptureVeto | None:
    """Return the widest veto that matches, or None.

    A cue is not in a question, see `is_stated`.
    """
    width = {"sentence": 0, "paragraph": 1, "before": 2, "message": 3}
    holding = [
        veto
        for rule_set, text in readings
        for veto in rule_set.vetoes
        if not veto.spares & groups and not (is_cue and veto.name == _QUESTION) and veto.pattern.search(text)
    ]
    return max(holding, key=lambda veto: width[veto.scope], default=None)


def _score(verdict: Verdict, matched: list[CaptureRule], readings: _Readings, speaker: str, paragraph: str) -> None:
    best = max(matched, key=lambda rule: rule.confidence)
    verdict.rule = best
    if named := [best] if best.category != "auto" else [rule for rule in matched if rule.category != "auto"]:
        verdict.category = max(named, key=lambda rule: rule.confidence).category
    confidence = best.confidence + min(_MAX_BONUS, _AGREEING_RULE_BONUS * (len(matched) - 1))
    if speaker == "assistant" and verdict.category in _CAUTIOUS:
        confidence -= _ASSISTANT_PENALTY
    spared = verdict.groups if speaker == "user" else verdict.groups - {CUSTOM}
    applied: set[str] = set()
    for shift, text in ((shift, text) for rule_set, text in readings for shift in rule_set.shifts):
        if shift.categories and verdict.category not in shift.categories:
            continue
        if shift.weight > 0:
            searched = paragraph if shift.name == _CERTAINTY else text
            if shift.pattern.search(searched):
                confidence += shift.weight
        elif shift.name not in applied and not (shift.spares | {CUSTOM}) & spared and shift.pattern.search(text):
            applied.add(shift.name)  # two languages may share the word
            confidence += shift.weight
            verdict.doubtful = True
    verdict.confidence = round(min(0.99, max(0.0, confidence)), 2)


_PART_END: Final = re.compile(rf"[.!?。\uff01\uff1f]|{CLAUSE_END.pattern}")
"""End of a part of a sentence: of a clause, or of a sentence in parentheses or before an abbreviation."""
_LABELLED: Final = r"^\W*(?:(?:%s)\W*)+[:\uff1a]\W*$"


def is_stated(pattern: re.Pattern[str], sentence: str, *, may_be_asked: bool = True) -> bool:
    """Return True if a sentence states the pattern itself.

    It is neither quoted, denied, conditional, asked nor reported.

    Args:
        pattern: Words to find.
        sentence: Sentence of the user's own.
        may_be_asked: Accept a polite request in the form of a question ("can you always …?").
    """
    if pattern.search(sentence) is None:
        return False
    unquoted = blank_quotations(sentence)
    is_asked = is_question(unquoted) or get_pattern("orders", "asks").search(unquoted)
    if is_asked and not (may_be_asked and get_pattern("orders", "request").search(unquoted)):
        return False
    return any(
        _is_meant(unquoted[: _get_first_word(match)])
        for match in _iter_matches(pattern, sentence)
        if not _is_quoted(match, unquoted)
    )


def _get_first_word(match: re.Match[str]) -> int:
    """Return the start of a match, after its leading comma if any."""
    return match.end() - len(match[0].lstrip(" ,;"))


def _iter_matches(pattern: re.Pattern[str], sentence: str) -> Iterator[re.Match[str]]:
    position = 0
    while match := pattern.search(sentence, position):
        yield match
        position = max(match.end(), match.start() + 1)


def _is_quoted(match: re.Match[str], unquoted: str) -> bool:
    """Return True if a match is in a quotation, blank in `own`."""
    start = match.end() - len(match[0].lstrip())
    return unquoted[start : start + 1].isspace()


def _is_meant(before: str) -> bool:
    """Return True if the words before a cue let it count."""
    clause = _PART_END.split(before)[-1]
    if any(get_pattern("orders", key).search(clause) for key in ("denies", "supposes")):
        return False
    is_labelled = not any(colon in before for colon in COLONS) or get_pattern("wishes", "labels", _LABELLED).match(
        before
    )
    is_reported = any(get_pattern(name, "reported").search(before) for name in ("wishes", "cues"))
    return bool(is_labelled) and not is_reported


def find_end(text: str, said_at: datetime) -> datetime | None:
    """Return the end of the last day of a text, or None.

    None unless "until Friday" ends a text of one clause, with no other day: else other words would expire with it.

    Args:
        text: Statement of the user.
        said_at: Time of saying, with a zone.
    """
    if get_pattern("cues", "until").search(text) is None:
        return None
    from agent_memory.times import times_in  # its grammar is for statements with an end
    from agent_memory.times.grammar import compile_clause_break

    local = said_at.astimezone()
    mentions = times_in(text, local)
    if len(mentions) != 1 or mentions[0].bound != "until" or any(map(str.isalnum, text[mentions[0].end :])):
        return None
    before, day = text[: mentions[0].start], mentions[0].named[0].end_day  # "until May" may include May
    has_clauses = any((CLAUSE_END.search(before), compile_clause_break().search(before), *find_breaks(before)))
    if has_clauses or not mentions[0].is_resolved or day <= local.date():
        return None
    return datetime.combine(day, time.min, local.tzinfo)
