"""Observations of one message, and their selection in turn and session.

Pure: no clock, no file except the rule data, nothing stored.

Message → own words (`typed_text`) → sentences → `verdicts` → captures: a sentence that a rule fits, with the plain
sentences around it that make it understandable → redaction → observations. `TurnBuffer` then drops what the model
stored by tool, and `CaptureLedger` what the session captured before.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.capture.other_authors import has_foreign_label
from agent_memory.capture.rules import build_custom_rules, load_rules
from agent_memory.capture.typed_text import (
    MAX_MESSAGE_CHARS,
    MAX_OWN_CHARS,
    get_typed_part,
    read_teammate_statements,
    separate,
    strip_injected,
    was_cut,
)
from agent_memory.capture.verdicts import Verdict, find_end, find_rules, judge
from agent_memory.language.languages import guess_languages
from agent_memory.language.sentences import COLONS, MessageSentence, split_sentences
from agent_memory.language.similarity import is_near_duplicate, is_restated, strip_cue
from agent_memory.late import compile_late
from agent_memory.models import Observation, Source, as_utc, is_stated, may_stand_for
from agent_memory.models.identifiers import RULE_CATEGORIES, TextOrigin
from agent_memory.models.memory import PASTED
from agent_memory.redaction import Redactor, SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from agent_memory.capture.rules import RuleSet
    from agent_memory.models import SourceKind
    from agent_memory.models.identifiers import OriginKind
    from agent_memory.settings import CaptureSettings

_MAX_CAPTURE_CHARS: Final = 700
_MAX_COMPANIONS: Final = 2
_MAX_LIST_ITEMS: Final = 6
_STRONG: Final = 0.75
_HEADLINE_CHARS: Final = 80
_PAST_A_CODE_BLOCK: Final = 2
"""A finding this short announces the paragraph that explains it."""

_SURE: Final = 0.8
"""Confidence from which a typed statement of these categories is stored without a cue."""
_PERSONAL: Final = frozenset(("preference", "question"))

_FINDINGS: Final = frozenset(("bugfix", "discovery"))
"""A finding and its cause are often stated together."""

_MIN_WORDS: Final = 4
_MIN_WORDS_OF_CUE: Final = 2
_MIN_WIDE_CHARS: Final = 6
_SPEAKERS: Final[dict[str, SourceKind]] = {"user": "user", "assistant": "assistant"}
_ORIGINS: Final[dict[str, OriginKind]] = {"user": "typed", "assistant": "model"}
_PASTED: Final = {"cue": "", "trust": "low", "source": Source(kind="import", detail=PASTED), "origin": "pasted"}
"""Fields of an observation that another author may have written."""
_NEEDS_YES: Final = compile_late(
    r"`|\w@\w|\w://|(?<![\w@./-])www\.\w|(?<![\w./@-])[a-z][\w-]*(?:\.[\w-]+)*\.[a-z]{2,24}/\w|(?:\d{1,3}\.){3}\d"
    r"|(?:^|\s)(?:\$ |--[a-z]|(?:&&|\|\|?|>>?)\s)"
    r"|(?<![\w@])@[a-z][\w-]*(?![\w/(-]|\.\w)|(?<![\w.+-])(?!\d{4}[-/.]\d\d)\+?\(?\d(?:[ ()./-]{0,2}\d){8,14}(?!\w)"
    r"|(?<![\w./\\])(?:~[\w-]*/|\.\.[/\\]|[a-z]:\\|\\\\\w|/(?:etc|home|media|mnt|opt|private|root|srv|tmp|users|usr|var)/)",
    re.IGNORECASE,
)
"""Address, person by handle or number, path outside a project, or shell command: a rule with one waits for a yes."""
_FEW_WORDS: Final = 2
_ANAPHOR: Final = compile_late(
    r"(?i)^\W*(?:and |so |but |please |also |not now,? but )*(?:(?:don't|do not|never|always|i want to|we should|keep"
    r"|put|look at|use)(?: \w+)? )*(?:it|them|that|this|those|these|they|its|it's|that's)\b"
)
"""A sentence about what was said before it."""

_MARKER: Final = compile_late(r"\[redacted:[a-z0-9-]+\]")
_WIDE: Final = compile_late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD: Final = compile_late(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Extraction:
    """Observations of a message, and counts of dropped sentences by reason."""

    observations: list[Observation]
    skipped: Counter[str]


@dataclass(slots=True)
class _CaptureDraft:
    """A capture in the making."""

    verdict: Verdict
    sentences: list[MessageSentence]
    hits: list[MessageSentence]
    confidence: float
    companions: int = 0

    @property
    def announces(self) -> bool:
        """True if it begins with a sentence that introduces a list."""
        first = self.sentences[0]
        return first.text.rstrip("*_ ").endswith(COLONS) and not first.block

    @property
    def length(self) -> int:
        return sum(len(sentence.text) + 1 for sentence in self.sentences)

    def is_typed_in(self, typed: str) -> bool:
        """Return True if only the user can have written its sentences."""
        return all(
            " ".join(sentence.text.split()) in typed and not has_foreign_label(sentence.masked)
            for sentence in self.sentences
        )


class Extractor:
    """Finds what is worth a memory in a message.

    Args:
        settings: Thresholds and the user's own patterns.
        redactor: Takes secrets out of what is captured.

    Raises:
        ConfigurationError: A pattern of the user's own cannot be used.
    """

    def __init__(self, settings: CaptureSettings, redactor: Redactor | None = None) -> None:
        self._settings = settings
        self._redactor = redactor or SecretRedactor()
        self._custom = build_custom_rules(settings.capture_patterns)

    def extract(self, text: str, source: str) -> list[Observation]:
        """Return the observations in `text`; `source` is `user`, `assistant` or `tool:<name>`."""
        return self.examine(text, source).observations

    def examine(
        self,
        text: str,
        source: str,
        *,
        returned: Sequence[str] = (),
        now: datetime | None = None,
        session_id: str = "",
    ) -> Extraction:
        """Return the observations in `text`, and why other sentences were dropped.

        Args:
            text: One message, as it was said.
            source: `user`, `assistant` or `tool:<name>`.
            returned: Contents that our own tools returned in this session: said again by others than the user, they are
                no news. What the user says again may be a confirmation; the service compares it with what is stored.
            now: When the message was said; becomes `observed_at`.
            session_id: Of the session it was said in.
        """
        skipped: Counter[str] = Counter()
        kind, _, tool = source.partition(":")
        message = strip_injected(_remove_unstorable(text[:MAX_MESSAGE_CHARS]))
        if kind == "tool":
            message = read_teammate_statements(message)
        if not _says_something(message, _MIN_WORDS_OF_CUE):
            return Extraction([], skipped)  # a greeting; compiling the rules would take a tenth of a second
        typed_lines, blocks = separate(message, typed=kind == "user", has_tail=True)
        if kind == "user" and len(typed_lines) > MAX_OWN_CHARS:
            return Extraction([], Counter(pasted=1))
        verdicts = self._judge_all(typed_lines, blocks, "teammate" if kind == "tool" else kind)
        _apply_scopes(verdicts)
        echoes = [_fold_words(content) for content in returned if content.strip() and kind != "user"]
        seen: dict[str, object] = {"session_id": session_id, "observed_at": now and as_utc(now)}
        observations = []
        typed = " ".join(get_typed_part(message).split()) if kind == "user" else ""
        for draft in self._group(verdicts, skipped):
            content, reason = self._finish(draft, echoes)
            if reason:
                skipped[reason] += 1
            else:
                ends = {"expires_at": _find_end(content, now)} if draft.verdict.cue and now else {}
                doubt = _PASTED if kind == "user" and not draft.is_typed_in(typed) else {}
                observation = _observe(draft, content, kind, tool).model_copy(update={**seen, **ends, **doubt})
                observations.append(_withhold(observation))
        return Extraction(observations, skipped)

    def _judge_all(self, typed_lines: str, blocks: dict[str, str], speaker: str) -> list[Verdict]:
        sentences = [sentence for sentence in split_sentences(typed_lines, blocks) if not was_cut(sentence.text)]
        paragraphs: dict[int, str] = {}
        for sentence in sentences:
            paragraphs[sentence.paragraph] = f"{paragraphs.get(sentence.paragraph, '')} {sentence.masked}"
        rule_sets = [self._load_rules(language) for language in guess_languages(typed_lines)]
        matched = [find_rules(sentence, rule_sets, self._custom, speaker) for sentence in sentences]
        if not any(matched):
            return []  # most messages: neither vetoes nor doubts matter
        return [
            judge(sentence, rules, rule_sets, speaker, paragraphs[sentence.paragraph][:4000])
            for sentence, rules in zip(sentences, matched, strict=True)
        ]

    def _load_rules(self, language: str) -> RuleSet:
        """Return the rules of a language, if the settings allow them."""
        rule_set = load_rules(language)
        return rule_set if self._settings.builtin_rules else replace(rule_set, rules=())

    def _group(self, verdicts: list[Verdict], skipped: Counter[str]) -> list[_CaptureDraft]:
        """Join each hit with what belongs to it."""
        drafts: list[_CaptureDraft] = []
        current: _CaptureDraft | None = None
        loose: Verdict | None = None
        for before, verdict in zip([None, *verdicts], verdicts, strict=False):
            if loose is None and before is not None and before.veto is None and _needs_predecessor(verdict):
                loose = before
            if verdict.veto is not None:
                if verdict.rule is not None:
                    skipped[verdict.veto.name] += 1
                current = loose = None
            elif verdict.is_hit and verdict.confidence >= self._settings.min_confidence:
                is_of_current = current is not None and current.verdict.cue == verdict.cue == ""
                if current is not None and (is_of_current or current.announces) and _belongs(current, verdict):
                    _merge(current, verdict)
                elif not _is_complete(verdict, loose):
                    skipped["no_content"] += 1
                    current = None
                else:
                    is_whole = verdict.cue and _is_complete(verdict, None)
                    context = [loose.sentence] if loose and not is_whole and _same_paragraph(loose, verdict) else []
                    sentences = [*context, verdict.sentence]
                    current = _CaptureDraft(verdict, sentences, [verdict.sentence], verdict.confidence)
                    drafts.append(current)
                loose = None
            else:
                if verdict.is_hit:
                    skipped["low_confidence"] += 1
                if current is not None and _may_accompany(current, verdict):
                    current.sentences.append(verdict.sentence)
                    current.companions += 1
                    loose = None
                else:
                    current = None
                    loose = None if verdict.doubtful or verdict.sentence.is_heading else verdict
        return drafts

    def _finish(self, draft: _CaptureDraft, echoes: list[str]) -> tuple[str, str]:
        """Return the content and "", or "" and a reason."""
        if draft.announces and len(draft.sentences) == 1:
            return "", "announcement"
        content = _compose(self._drop_secret_companions(draft))
        if draft.verdict.cue:
            content = strip_cue(content)
        if echoes and any(_fold_words(content) in echo or echo in _fold_words(content) for echo in echoes):
            return "", "own_text"
        content = self._clean(content)
        bare = _MARKER.sub(" ", content)
        if bare != content and not _says_something(bare, _MIN_WORDS + 1):
            return "", "only_a_secret"
        if len(content) + len(_WIDE.findall(content)) < self._settings.min_content_length:
            return "", "too_short"
        if len(content) > self._settings.max_content_length:
            return "", "too_long"
        least = _MIN_WORDS_OF_CUE if draft.verdict.cue else _MIN_WORDS - 1
        return (content, "") if _says_something(bare, least) else ("", "too_short")

    def _drop_secret_companions(self, draft: _CaptureDraft) -> list[MessageSentence]:
        """Return the sentences without companions that held a secret.

        Their markers would only show that.
        """
        if not _MARKER.search(self._clean(_compose(draft.sentences))):
            return draft.sentences
        return [
            sentence
            for sentence in draft.sentences
            if sentence in draft.hits or not _MARKER.search(self._clean(sentence.text))
        ]

    def _clean(self, text: str) -> str:
        return self._redactor.redact(text).text


def _observe(draft: _CaptureDraft, content: str, kind: str, tool: str) -> Observation:
    source = _SPEAKERS.get(kind, "tool")
    is_sure = draft.confidence >= _SURE and draft.verdict.category in _PERSONAL and not draft.verdict.doubtful
    return Observation(
        content=content,
        category=draft.verdict.category,
        confidence=draft.confidence,
        source=Source(kind=source, detail=tool[:200]),
        origin=str(TextOrigin(_ORIGINS.get(kind, "tool"), "" if kind in _ORIGINS else tool)),
        trust="low" if source == "tool" else "medium",
        rule=draft.verdict.rule.name if draft.verdict.rule else "",
        cue=draft.verdict.cue or ("sure" if kind == "user" and is_sure else ""),
    )


def _withhold(observation: Observation) -> Observation:
    """Return a rule with an address or a command as a note."""
    is_rule = observation.cue == "standing" or observation.category in RULE_CATEGORIES
    return (
        observation.model_copy(update={"cue": ""})
        if is_rule and _NEEDS_YES.search(observation.content)
        else observation
    )


def _find_end(content: str, now: datetime) -> datetime | None:
    end = find_end(content, as_utc(now))
    return end and as_utc(end)


def _remove_unstorable(text: str) -> str:
    """Remove NUL and halves of surrogate pairs, which no memory can hold."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def _apply_scopes(verdicts: list[Verdict]) -> None:
    """Spread each veto over the sentences it covers."""
    for position, verdict in enumerate(verdicts):
        veto = verdict.veto
        if veto is None or veto.scope == "sentence":
            continue
        paragraph = verdict.sentence.paragraph
        for covered_position, covered in enumerate(verdicts):
            is_covered = (
                veto.scope == "message"
                or (veto.scope == "before" and covered_position <= position)
                or (
                    veto.scope == "paragraph"
                    and covered.sentence.paragraph == paragraph
                    and covered_position >= position
                )
            )
            if is_covered and covered.veto is None:
                covered.veto = veto


def _same_paragraph(first: Verdict, second: Verdict) -> bool:
    return first.sentence.paragraph == second.sentence.paragraph


def _belongs(draft: _CaptureDraft, verdict: Verdict) -> bool:
    """Return True if a hit continues the capture before it.

    It has the same subject, or says too little alone.
    """
    if draft.length + len(verdict.sentence.text) > _MAX_CAPTURE_CHARS:
        return False
    if verdict.groups & {"task", "question"} and verdict.category != draft.verdict.category:
        return False
    if draft.announces and verdict.sentence.is_item:
        return draft.companions < _MAX_LIST_ITEMS
    if draft.verdict.sentence.paragraph != verdict.sentence.paragraph:
        return False
    if {verdict.category, draft.verdict.category} <= _FINDINGS or _needs_predecessor(verdict):
        return True
    return verdict.category == draft.verdict.category or verdict.confidence < _STRONG


def _is_complete(verdict: Verdict, context: Verdict | None) -> bool:
    """Return True if a hit says enough, with the sentence before it."""
    sentence = verdict.sentence
    if sentence.block or sentence.text.endswith(COLONS) or len(_WIDE.findall(sentence.text)) >= _MIN_WIDE_CHARS:
        return True
    if telling := _telling_words(sentence.text):
        return context is not None or len(telling) > _FEW_WORDS or not _ANAPHOR.match(sentence.masked)
    return context is not None and _same_paragraph(context, verdict)


def _needs_predecessor(verdict: Verdict) -> bool:
    """Return True if a sentence such as "keep that" needs its predecessor."""
    masked = verdict.sentence.masked
    return len(_telling_words(masked)) <= _FEW_WORDS or _ANAPHOR.match(masked) is not None


def _telling_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in load_rules("en").empty_words]


def _merge(draft: _CaptureDraft, verdict: Verdict) -> None:
    draft.sentences.append(verdict.sentence)
    draft.hits.append(verdict.sentence)
    draft.companions += verdict.sentence.is_item
    rule = draft.verdict.rule
    is_vague = rule is not None and rule.category == "auto" and draft.verdict.category == "note"
    if is_vague or (verdict.category == "bugfix" and draft.verdict.category == "discovery"):
        draft.verdict.category = verdict.category
    draft.confidence = max(draft.confidence, verdict.confidence)


def _may_accompany(draft: _CaptureDraft, verdict: Verdict) -> bool:
    distance = verdict.sentence.paragraph - draft.sentences[-1].paragraph
    if draft.length + len(verdict.sentence.text) > _MAX_CAPTURE_CHARS:
        return False
    if draft.announces and (verdict.sentence.is_item or draft.companions == 0):
        return draft.companions < _MAX_LIST_ITEMS and distance <= 1
    if draft.verdict.cue:
        return False
    is_headline = draft.verdict.category in _FINDINGS and draft.length < _HEADLINE_CHARS
    is_near = distance <= (_PAST_A_CODE_BLOCK if is_headline else 0)
    return is_near and not (verdict.doubtful or verdict.sentence.is_heading) and draft.companions < _MAX_COMPANIONS


def _compose(sentences: Iterable[MessageSentence]) -> str:
    parts: list[str] = []
    for sentence in sentences:
        parts.append(f"\n- {sentence.text.strip()}" if sentence.is_item and parts else sentence.text.strip())
        if sentence.block:
            parts[-1] += f"\n{sentence.block}\n"
    joined = " ".join(parts) if not any(_WIDE.search(part) for part in parts) else "".join(parts)
    return joined.strip().strip("*").strip()


def _says_something(text: str, words: int) -> bool:
    return len(_WORD.findall(text)) >= words or len(_WIDE.findall(text)) >= _MIN_WIDE_CHARS


def _fold_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


class TurnBuffer:
    """Candidates of a turn, held until it ends.

    The model may store the same by tool.
    """

    def __init__(self) -> None:
        self._held: list[Observation] = []

    def hold(self, observations: Iterable[Observation]) -> None:
        """Keep candidates until the turn ends."""
        self._held.extend(observations)

    def __len__(self) -> int:
        return len(self._held)

    def release(
        self, stored_by_tool: Sequence[str], *, low_trust: bool = False
    ) -> tuple[list[Observation], Counter[str]]:
        """End the turn.

        Args:
            stored_by_tool: Contents that the model stored by tool in this turn.
            low_trust: True after untrusted output; what was stored then replaces no words of the user.

        Returns:
            The candidates that are not among them, and how many were dropped for which reason.
        """
        held, self._held = self._held, []
        candidates = [
            observation
            for observation in held
            if (low_trust and _is_typed(observation)) or not is_restated(observation.content, stored_by_tool)
        ]
        return candidates, +Counter(stored_by_tool=len(held) - len(candidates))


class CaptureLedger:
    """Captures of a session, without near duplicates and up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: list[Observation] = []
        self.captured = 0
        self.skipped: Counter[str] = Counter()

    def admit(self, observations: Iterable[Observation]) -> tuple[list[Observation], Counter[str]]:
        """Return the new ones within the limit, and counts of dropped ones."""
        admitted: list[Observation] = []
        dropped: Counter[str] = Counter()
        for observation in observations:
            if any(_covers(seen, observation) for seen in self._seen):
                dropped["duplicate"] += 1
            elif len(self._seen) >= self._limit:
                dropped["session_limit"] += 1
            else:
                self._seen.append(observation)
                admitted.append(observation)
        self.skipped.update(dropped)
        return admitted, dropped

    def withdraw(self, observations: Sequence[Observation]) -> None:
        """Take back what was admitted and could not be stored."""
        self._seen = [seen for seen in self._seen if not any(seen is observation for observation in observations)]

    def count(self, captured: int, skipped: dict[str, int]) -> None:
        """Add the counts of a batch."""
        self.captured += captured
        self.skipped.update(skipped)


def _is_typed(observation: Observation) -> bool:
    return observation.trust != "low" and is_stated(observation)


def _covers(seen: Observation, observation: Observation) -> bool:
    """Return True if an observation repeats a seen one."""
    return (
        bool(seen.cue or not observation.cue)
        and may_stand_for(seen.trust, observation.trust)
        and is_near_duplicate(observation.content, seen.content)
    )
