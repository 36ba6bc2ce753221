"""The rules of a language, read from `patterns/<language>.yaml`. Data in, compiled patterns out; decides nothing.

A file has these keys:

- `function_words`: words by which the language is recognised.
- `define`: names for parts of patterns; `{name}` in a pattern is replaced.
- `vetoes`: what forbids a capture. `scope`: sentence; paragraph (and the rest of it); before (this sentence and all
  before it); message. `spares`: groups of rules that pass nevertheless.
- `penalties`: what makes a capture less likely; `weight` is taken from the confidence, unless the rule's group is spared.
- `boosts`: what makes one of the categories in `of` more likely.
- `rules`: what is captured. `confidence` 0..1; `category` (`auto`: that of the best other rule, else note); `sources`:
  user, assistant, teammate; `group`: explicit, standing, task, question or none.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import yaml

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "ja", "zh")
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Veto:
    """A reason to capture nothing within `scope`."""

    name: str
    pattern: re.Pattern[str]
    scope: str
    spares: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of confidence: a penalty (negative) or a boost, for which groups and categories it holds."""

    name: str
    pattern: re.Pattern[str]
    weight: float
    spares: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that makes a sentence worth keeping."""

    name: str
    pattern: re.Pattern[str]
    category: str
    confidence: float
    sources: frozenset[str]
    group: str = ""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Everything known about one language."""

    language: str
    function_words: frozenset[str]
    vetoes: tuple[Veto, ...]
    shifts: tuple[Shift, ...]
    rules: tuple[Rule, ...]


@functools.cache
def load_rules(language: str) -> RuleSet:
    """Return the rules of `language`, read and compiled once."""
    raw = _read(language)
    define = raw.get("define", {})
    for name, pattern in define.items():
        define[name] = _PLACEHOLDER.sub(lambda match: define.get(match[1], match[0]), pattern)

    def compiled(entry: dict[str, Any]) -> re.Pattern[str]:
        return re.compile(
            _PLACEHOLDER.sub(lambda match: define.get(match[1], match[0]), entry["pattern"]), re.IGNORECASE
        )

    def shift(entry: dict[str, Any], sign: int) -> Shift:
        return Shift(
            entry["name"],
            compiled(entry),
            sign * entry["weight"],
            frozenset(entry.get("spares", ())),
            frozenset(entry.get("of", ())),
        )

    return RuleSet(
        language=language,
        function_words=frozenset(raw.get("function_words", ())),
        vetoes=tuple(
            Veto(entry["name"], compiled(entry), entry["scope"], frozenset(entry.get("spares", ())))
            for entry in raw.get("vetoes", ())
        ),
        shifts=(
            *(shift(entry, -1) for entry in raw.get("penalties", ())),
            *(shift(entry, 1) for entry in raw.get("boosts", ())),
        ),
        rules=tuple(
            Rule(
                f"{language}/{entry['name']}",
                compiled(entry),
                entry["category"],
                entry["confidence"],
                frozenset(entry["sources"]),
                entry.get("group", ""),
            )
            for entry in raw["rules"]
        ),
    )


def _read(language: str) -> dict[str, Any]:
    text = (resources.files("agent_memory.capture") / "patterns" / f"{language}.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader either way
    return loaded


_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_WORD: Final = re.compile(r"[a-zà-öø-ÿœ'’]+")


def guess_languages(text: str) -> tuple[str, ...]:
    """Return the languages whose rules to apply: by script, then by function words; English always takes part."""
    if _KANA.search(text):
        return ("ja", "en")
    if _HAN.search(text):
        return ("zh", "en")
    words = set(_WORD.findall(text[:4000].lower().replace("’", "'")))
    hits = {language: len(words & load_rules(language).function_words) for language in LANGUAGES[:5]}
    best = max(hits.values())
    return tuple(language for language in LANGUAGES[:5] if language == "en" or (hits[language] == best and best > 0))
