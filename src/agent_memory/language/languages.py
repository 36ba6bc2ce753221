"""Pattern files of a package, and the languages of a text.

A language has three files in `patterns`: its script and function words, which decide, in `languages.yaml`; its rules of
capture in `<language>.yaml` (`capture/rules.py` explains the keys); its words of time in `<language>.txt`
(`times/grammar.py` explains the lines).
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.words import LATIN_END
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPTS: Final = {
    "kana": compile_late(r"[\u3040-\u30ff]"),
    "hangul": compile_late(r"[\uac00-\ud7a3]"),
    "han": compile_late(r"[\u3400-\u9fff]"),
    "cyrillic": compile_late(r"[\u0400-\u04ff]"),
    "latin": compile_late(r"[A-Za-z\u00c0-\u024f]"),
}
"""Scripts in the order in which they decide: a text with kana is Japanese."""
_WORD: Final = compile_late(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_MOST_CHARS: Final = 4000
"""Characters of a text that are read."""
_ALWAYS: Final = "en"
_SURE: Final = 3
"""Surplus of function words of another language that is not accidental: English notes hold names and commands. None of
3,300 English notes and turns is taken for another language."""


@functools.cache
def load_patterns(package: str, name: str) -> dict[str, Any]:
    """Load the pattern files of a package.

    Args:
        package: Dotted name of the package.
        name: First part of the names: `patterns/<name>.yaml` and `patterns/<name>.<part>.yaml`.
    """
    import yaml  # 15 ms that a session without text does not pay

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    patterns: dict[str, Any] = {}
    for file in (resources.files(package) / "patterns").iterdir():
        if file.name.partition(".")[0] == name and file.name.endswith(".yaml"):
            text = file.read_text(encoding="utf-8")
            patterns |= yaml.load(text, Loader=loader)  # noqa: S506 - the safe loader, in a variable
    return patterns


@functools.cache
def load_languages() -> dict[str, dict[str, Any]]:
    """Load the script and the function words of each language code.

    Only of languages with rules of capture.
    """
    languages = _load_noticed_languages().items()
    return {code: language for code, language in languages if not language.get("is_only_noticed")}


def _load_noticed_languages() -> dict[str, dict[str, Any]]:
    return load_patterns("agent_memory.language", "languages")


def guess_languages(text: str) -> tuple[str, ...]:
    """Return the codes of the likely languages of a text, and English.

    The script decides, then the number of different function words. Equally likely languages are all included.
    """
    script = next((name for name, character in _SCRIPTS.items() if character.search(text)), "latin")
    hits = _count_function_words(text, script, load_languages())
    best = max(hits.values())
    likely = [code for code in hits if len(hits) == 1 or hits[code] == best > 0]
    return tuple(dict.fromkeys([_ALWAYS, *likely] if script == "latin" else [*likely, _ALWAYS]))


def is_other_language(text: str, surplus: int = _SURE) -> bool:
    """Return True if a text is surely in another language than English.

    It is mostly in another script than Latin, or has `surplus` more function words of another language than of English,
    or some words with letters that English has not and no function word of English.
    """
    letters = [char for char in text[:_MOST_CHARS] if char.isalpha()]
    if 2 * sum(char >= LATIN_END for char in letters) > len(letters):
        return True
    hits = _count_function_words(text, "latin", _load_noticed_languages())
    if max(hits.values()) - hits[_ALWAYS] >= surplus:
        return True
    return not hits[_ALWAYS] and _count_accented(text) >= _SURE


def _count_accented(text: str) -> int:
    """Count the different lowercase words with letters unknown to English."""
    words = set(_WORD.findall(text[:_MOST_CHARS].replace("\u2019", "'")))
    return sum(word.islower() and not word.isascii() for word in words)


def _count_function_words(text: str, script: str, languages: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Count the different function words of each language of a script."""
    words = set(_WORD.findall(text[:_MOST_CHARS].casefold().replace("\u2019", "'")))
    return {
        code: len(words.intersection(language.get("function_words", ())))
        for code, language in languages.items()
        if language["script"] == script
    }
