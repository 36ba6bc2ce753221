"""Rules of a language from `language/patterns/<language>.yaml`, and the user's own patterns.

A file has these keys:

- `empty_words`: words that carry no fact; a sentence of nothing else is not kept.
- `contractions`: words such as "don't" that are also read when written without the apostrophe.
- `define`: names for parts of patterns; `{name}` in a pattern is replaced.
- `vetoes`: what forbids a capture. `scope`: sentence; paragraph (and the rest of it); before (this sentence and all
  before it); message. `spares`: groups of rules that pass nevertheless.
- in all of these, `patterns`: regular expressions; one must be found, and case is ignored.
- `penalties`: what makes a capture (of one of the categories in `of`, if there is one) less likely; `weight` is taken
  from the confidence, unless the rule's group is spared.
- `boosts`: what makes one of the categories in `of` more likely.
- `rules`: what is captured. `confidence` 0..1; `category` (`auto`: that of the best other rule, else note); `sources`:
  user, assistant, teammate; `group`: explicit, standing, task, question or none. `cue`: class of explicit words
  (memory, standing, decision, identity) by which a user's sentence is kept at once; see `capture/verdicts.py`.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.language.languages import load_patterns
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.settings import CapturePattern

CUSTOM: Final = "custom"
"""Group of the user's own rules. What they find in the user's words is not doubted; what others say is."""
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class CaptureVeto:
    """A reason to capture nothing within `scope`."""

    name: str
    pattern: re.Pattern[str]
    scope: str
    spares: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConfidenceShift:
    """Change of confidence: a negative penalty, or a boost.

    It holds for some groups and categories.
    """

    name: str
    pattern: re.Pattern[str]
    weight: float
    spares: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CaptureRule:
    """A pattern that makes a sentence worth keeping."""

    name: str
    pattern: re.Pattern[str]
    category: str
    confidence: float
    sources: frozenset[str]
    group: str = ""
    cue: str = ""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Everything known about one language."""

    empty_words: frozenset[str]
    vetoes: tuple[CaptureVeto, ...]
    shifts: tuple[ConfidenceShift, ...]
    rules: tuple[CaptureRule, ...]
    contractions: re.Pattern[str] | None = None
    """The language's contractions as they look without their apostrophe."""

    def read(self, text: str) -> str:
        """Return `text` with the apostrophes that were left out: "dont" becomes "don't"."""
        if self.contractions is None:
            return text
        return self.contractions.sub(lambda match: _add_apostrophe(match[0]), text)


def _add_apostrophe(bare: str) -> str:
    """Add the missing apostrophe of a contraction: dont, im, youre."""
    ending = 2 if bare.casefold().endswith(("re", "ve", "ll")) else 1
    return f"{bare[:-ending]}'{bare[-ending:]}"


@functools.cache
def load_rules(language: str) -> RuleSet:
    """Return the rules of `language`, read and compiled once."""
    raw = load_patterns("agent_memory.language", language)
    define: dict[str, str] = {}
    for name, pattern in raw.get("define", {}).items():
        define[name] = _expand(pattern, define)
    return RuleSet(
        empty_words=frozenset(raw.get("empty_words", ())),
        vetoes=tuple(
            CaptureVeto(entry["name"], _compile(entry, define), entry["scope"], frozenset(entry.get("spares", ())))
            for entry in raw.get("vetoes", ())
        ),
        shifts=(
            *(_read_shift(entry, define, -1) for entry in raw.get("penalties", ())),
            *(_read_shift(entry, define, 1) for entry in raw.get("boosts", ())),
        ),
        rules=tuple(_read_rule(entry, define, language) for entry in raw["rules"]),
        contractions=_compile_contractions(raw.get("contractions", ())),
    )


def _compile_contractions(contractions: Sequence[str]) -> re.Pattern[str] | None:
    words = "|".join(word.replace("'", "") for word in contractions)
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE) if words else None


def _expand(pattern: str, define: Mapping[str, str]) -> str:
    """Replace `{name}`; braces that name nothing (quantifiers) stay."""
    return _PLACEHOLDER.sub(lambda match: define.get(match[1], match[0]), pattern)


def _compile(entry: Mapping[str, Any], define: Mapping[str, str]) -> re.Pattern[str]:
    return compile_late(_expand("|".join(entry["patterns"]), define), re.IGNORECASE)


def _read_shift(entry: Mapping[str, Any], define: Mapping[str, str], sign: int) -> ConfidenceShift:
    spares, categories = frozenset(entry.get("spares", ())), frozenset(entry.get("of", ()))
    return ConfidenceShift(entry["name"], _compile(entry, define), sign * entry["weight"], spares, categories)


def _read_rule(entry: Mapping[str, Any], define: Mapping[str, str], language: str) -> CaptureRule:
    return CaptureRule(
        name=f"{language}/{entry['name']}",
        pattern=_compile(entry, define),
        category=entry["category"],
        confidence=entry["confidence"],
        sources=frozenset(entry["sources"]),
        group=entry.get("group", ""),
        cue=entry.get("cue", ""),
    )


def read_patterns(name: str) -> dict[str, Any]:
    """Read `patterns/<name>.yaml` and `<name>.<part>.yaml`."""
    return load_patterns("agent_memory.capture", name)


@functools.cache
def get_pattern(name: str, key: str, frame: str = "%s") -> re.Pattern[str]:
    """Return the pattern of a list in `patterns/<name>.yaml`, ignoring case.

    Args:
        name: Name of the file without its suffix.
        key: Name of a list in the file.
        frame: Pattern around the alternatives, which replace its `%s`.
    """
    return re.compile(frame % "|".join(read_patterns(name)[key]), re.IGNORECASE)


TIME_LIMIT_SECONDS: Final = 0.05
"""Per pattern and sentence; a sane pattern needs microseconds for the 1,000 characters a sentence can have."""

_SOURCES: Final = frozenset(("user", "assistant", "teammate"))


class TimeLimitedPattern:
    """Compiled pattern that never matches again after a timeout.

    Uses the `regex` package, whose `search` takes a timeout; the standard library's cannot be interrupted.

    Raises:
        ConfigurationError: The package refuses the pattern.
    """

    def __init__(self, pattern: str) -> None:
        regex: Any = importlib.import_module("regex")  # 30 ms that only users with patterns of their own pay

        try:
            self._compile: Any = regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)
        except regex.error as error:
            raise ConfigurationError(f"hooks-memory-capture: a capture pattern cannot be used: {error}.") from None
        self.disabled = False

    def search(self, text: str) -> Any:
        """Return a match, or None if nothing matched in time."""
        if self.disabled:
            return None
        try:
            return self._compile.search(text, timeout=TIME_LIMIT_SECONDS)
        except TimeoutError:
            self.disabled = True
            return None


def build_custom_rules(patterns: Sequence[CapturePattern]) -> tuple[CaptureRule, ...]:
    """Return a rule for each configured pattern, in order.

    They search all sources except raw tool output.
    """
    return tuple(
        CaptureRule(
            name=f"custom/{position}",
            pattern=TimeLimitedPattern(entry.pattern),  # type: ignore[arg-type]  # search() is all a rule needs
            category=entry.category,
            confidence=entry.confidence,
            sources=_SOURCES,
            group=CUSTOM,
        )
        for position, entry in enumerate(patterns)
    )
