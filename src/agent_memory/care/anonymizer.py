"""Placeholders for names and contact data in an export."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

from agent_memory.language.words import STOP_WORDS
from agent_memory.models import ENTITY, EPISODE, TOPIC
from agent_memory.models.knowledge import DERIVED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.care.account import HeldRecord

_ROLES: Final = frozenset({"agent", "ai", "assistant", "human", "system", "tool", "user"})
_BY_FORM: Final = "identifiers"
"""Source of entities that are found by their form; contact data among them has patterns here."""
_LEAST_LETTERS: Final = 2
"""Letters of a name; a single one would be found in too many words."""
_UNSPACED: Final = "⺀"
"""First character of scripts without spaces, where a name may touch another word."""
_KEPT: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?")
"""Whole values that stay: IDs and dates."""
_FIELDS: Final = frozenset(
    (
        "act", "category", "content_type", "cue", "entity_type", "kind", "level", "origin", "rel", "relation_type",
        "resource_type", "role", "trust", "via",
    )
)  # fmt: skip
"""Fields with values of the format. They stay, also if a person is called Low or Episode."""
_METADATA: Final = "metadata"
"""Field whose keys are free, so that all its texts count."""
_SPACE: Final = re.compile(r"[\s_]+")
"""What is between the words of a name, in texts and in names of files and topics."""
_MARKS: Final = {"'": "'\u2018\u2019\u02bc", "-": "-\u2010\u2011"}
"""Apostrophes and hyphens of names, with other characters for them."""
_LAST_EXPANDED: Final = 0xFB17
"""Last character that lower case spells with two, as `ß` with `ss`."""
_PLACEHOLDER: Final = re.compile(r"\b(?:address|handle|home|mail|name|person|phone)-\d+\b", re.IGNORECASE)
_CONTACTS: Final = (
    r"(?P<mail>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})"
    r"|(?P<home>(?<=/home/)[^/\s]{1,64}|(?<=/Users/)[^/\s]{1,64}|(?<=:\\Users\\)[^\\\s]{1,64})"
    r"|(?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d))"
    r"|(?P<phone>(?<![\w.+-])(?!\d{4}[-/.]\d\d)\+?\(?\d(?:[ ()./-]{0,2}\d){8,14}(?!\w))"
    r"|(?P<handle>(?<![\w@])@[A-Za-z][\w-]{0,64})"
)


class ExportAnonymizer:
    """Replaces what identifies people; an equal text gets the same placeholder.

    Known names are those of speakers and entities, with their aliases, except identifiers such as orders and files. A
    part of a person's name counts, too.

    Args:
        holdings: All records of an agent.
    """

    def __init__(self, holdings: Iterable[HeldRecord]) -> None:
        self.counts: Counter[str] = Counter()
        self._placeholders: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        records = list(holdings)
        texts = (text for record in records for text in record.strings())
        self._taken = {word.casefold() for text in texts for word in _PLACEHOLDER.findall(text)}
        for record in records:
            self._learn(record)
        names = sorted(self._placeholders, key=lambda name: (-len(name), name))
        spellings = _list_spellings()
        alternatives = f"|(?P<name>{'|'.join(_build_pattern(name, spellings) for name in names)})" if names else ""
        self._pattern = re.compile(_CONTACTS + alternatives, re.IGNORECASE)

    def anonymize(self, value: Any, fields: frozenset[str] = _FIELDS) -> Any:
        """Return a value whose texts have placeholders.

        Args:
            value: A record, or a part of one. IDs, dates and keys stay.
            fields: Keys whose texts stay as well.
        """
        if isinstance(value, dict):
            if fields and (value.get("kind") == "extraction" or value.get("detail") in DERIVED_TOPICS):
                fields |= {"detail"}
            anonymized = {key: self._anonymize_part(key, part, fields) for key, part in value.items()}
            for key in ("topic", "name") if value.get("kind") == TOPIC.name else ("topic",):
                if fields and isinstance(anonymized.get(key), str):
                    anonymized[key] = anonymized[key].replace("-", "_")
            return anonymized
        if isinstance(value, list | tuple):
            return [self.anonymize(part, fields) for part in value]
        if not isinstance(value, str) or _KEPT.fullmatch(value):
            return value
        return self._pattern.sub(self._get_placeholder, normalize("NFC", value))

    def _anonymize_part(self, key: str, part: Any, fields: frozenset[str]) -> Any:
        if key in fields and isinstance(part, str):
            return part
        return self.anonymize(part, frozenset() if key == _METADATA else fields)

    def _learn(self, holding: HeldRecord) -> None:
        """Give the names of a record one placeholder."""
        data = holding.data
        if holding.kind == EPISODE.name:
            self._add("person", [data.get("speaker")])
        elif holding.kind == ENTITY.name and data.get("source", {}).get("detail") != _BY_FORM:
            aliases = data.get("aliases")
            names = [data.get("name"), *(aliases if isinstance(aliases, list) else [])]
            self._add("person" if data.get("entity_type") == "person" else "name", names)

    def _add(self, label: str, names: list[Any]) -> None:
        folded = [_normalize(name) for name in names if isinstance(name, str)]
        if label == "person":
            folded += [word for name in folded for word in name.split() if word not in STOP_WORDS]
        folded = [name for name in folded if len(name) >= _LEAST_LETTERS and name not in _ROLES]
        existing = next((self._placeholders[name] for name in folded if name in self._placeholders), "")
        for name in folded:
            self._placeholders.setdefault(name, existing or self._number(label))
            existing = self._placeholders[name]

    def _number(self, label: str) -> str:
        """Return a placeholder that no stored text has."""
        self._numbers[label] += 1
        while (placeholder := f"{label}-{self._numbers[label]}") in self._taken:
            self._numbers[label] += 1
        return placeholder

    def _get_placeholder(self, match: re.Match[str]) -> str:
        label, folded = match.lastgroup or "name", _normalize(match[0])
        self.counts[label] += 1
        if folded not in self._placeholders:
            self._placeholders[folded] = self._number(label)
        return self._placeholders[folded]


def _normalize(name: str) -> str:
    """Return one spelling for those that the pattern of a name finds."""
    folded = normalize("NFC", name).casefold()
    for mark, variants in _MARKS.items():
        folded = re.sub(f"[{variants}]", mark, folded)
    return " ".join(_SPACE.split(folded.strip()))


def _list_spellings() -> dict[str, str]:
    """Return patterns of what folded names spell in another way."""
    expanded: defaultdict[str, str] = defaultdict(str)
    for character in map(chr, range(_LAST_EXPANDED + 1)):
        if len(folded := character.casefold()) > 1:
            expanded[folded] += character
    patterns = {folded: f"(?:{re.escape(folded)}|[{characters}])" for folded, characters in expanded.items()}
    return patterns | {mark: f"[{variants}]" for mark, variants in _MARKS.items()}


def _build_pattern(name: str, spellings: dict[str, str]) -> str:
    respelled = re.compile("|".join(map(re.escape, sorted(spellings, key=len, reverse=True))) + "|.", re.DOTALL)

    def spell(match: re.Match[str]) -> str:
        return spellings.get(match[0]) or re.escape(match[0])

    words = _SPACE.pattern.join(respelled.sub(spell, word) for word in name.split())
    return words if any(character >= _UNSPACED for character in name) else rf"(?<![^\W_]){words}(?![^\W_])"
