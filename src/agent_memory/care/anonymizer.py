"""Placeholders for names and contact data in an export."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.words import STOP_WORDS
from agent_memory.models import ENTITY, EPISODE

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
_ID: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}")
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
        for holding in holdings:
            self._learn(holding)
        names = sorted(self._placeholders, key=lambda name: (-len(name), name))
        alternatives = f"|(?P<name>{'|'.join(map(_build_pattern, names))})" if names else ""
        self._pattern = re.compile(_CONTACTS + alternatives, re.IGNORECASE)

    def anonymize(self, value: Any) -> Any:
        """Return a value whose texts have placeholders; IDs and keys stay."""
        if isinstance(value, dict):
            return {key: self.anonymize(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.anonymize(part) for part in value]
        if not isinstance(value, str) or _ID.fullmatch(value):
            return value
        return self._pattern.sub(self._get_placeholder, value)

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
        self._numbers[label] += 1
        return f"{label}-{self._numbers[label]}"

    def _get_placeholder(self, match: re.Match[str]) -> str:
        label, folded = match.lastgroup or "name", _normalize(match[0])
        self.counts[label] += 1
        if folded not in self._placeholders:
            self._placeholders[folded] = self._number(label)
        return self._placeholders[folded]


def _normalize(name: str) -> str:
    return " ".join(name.casefold().split())


def _build_pattern(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    return words if any(character >= _UNSPACED for character in name) else rf"(?<!\w){words}(?!\w)"
