"""Pattern files of a package, and the languages of a text.

A language has three files in `patterns`: its script and function words, which decide, in `languages.yaml`; its rules of
capture in `<language>.yaml` (`capture/rules.py` explains the keys); its words of time in `<language>.txt`
(`times/vocabulary.py` explains the lines).
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, Final

from agent_memory.late import compile_late

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
    """Load the script and the function words of each language code."""
    return load_patterns("agent_memory.language", "languages")


def guess_languages(text: str) -> tuple[str, ...]:
    """Return the codes of the likely languages of a text, and English.

    The script decides, then the number of different function words. Equally likely languages are all included.
    """
    languages = load_languages()
    script = next((name for name, character in _SCRIPTS.items() if character.search(text)), "latin")
    likely = [code for code, language in languages.items() if language["script"] == script]
    if len(likely) > 1:
        words = set(_WORD.findall(text[:_MOST_CHARS].casefold().replace("\u2019", "'")))
        hits = {code: len(words.intersection(languages[code]["function_words"])) for code in likely}
        best = max(hits.values())
        likely = [code for code in likely if hits[code] == best > 0]
    return tuple(dict.fromkeys([_ALWAYS, *likely] if script == "latin" else [*likely, _ALWAYS]))
