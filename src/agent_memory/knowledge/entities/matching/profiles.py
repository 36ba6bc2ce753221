"""Descriptions prepared for comparison."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_memory.knowledge.entities.matching.known import known_form
from agent_memory.knowledge.entities.matching.normal import (
    fold,
    has_digit,
    is_email,
    legal_forms,
    name_words,
    normal_form,
    words_of,
)
from agent_memory.knowledge.entities.matching.people import mailbox
from agent_memory.knowledge.entities.matching.telling import codes_of, is_measure, marks_of, models_of

if TYPE_CHECKING:
    from agent_memory.knowledge.entities.record import Described

ValueKind: TypeAlias = Literal["phone", "email", "url", "year", "price", "id", "people", "address", "text", "label"]
"""How values of an attribute are compared. `label` is any short value, `text` any long one."""

_KEYS: Final[dict[str, ValueKind]] = {
    **dict.fromkeys(("phone", "tel", "telephone", "mobile", "cell", "fax", "telefon"), "phone"),
    **dict.fromkeys(("email", "mail"), "email"),
    **dict.fromkeys(("url", "website", "homepage", "web", "link"), "url"),
    **dict.fromkeys(("year", "founded", "published", "born", "birthyear"), "year"),
    **dict.fromkeys(("price", "cost", "amount"), "price"),
    **dict.fromkeys(
        ("id", "sku", "isbn", "ean", "upc", "gtin", "asin", "serial", "model", "mpn", "vin", "doi", "orcid", "uuid",
         "ip", "mac", "commit", "sha", "number", "ticket", "version", "modelno", "iban", "vat"), "id"
    ),
    **dict.fromkeys(("author", "authors", "people", "members", "editors", "artists", "artist"), "people"),
    **dict.fromkeys(("addr", "address", "street", "adresse"), "address"),
    **dict.fromkeys(("description", "notes", "note", "summary", "text", "abstract", "comment", "bio"), "text"),
}  # fmt: skip
_LONG: Final = 12
_MOST_NAMES: Final = 8
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_KEY_PART: Final = re.compile(r"[^a-z]+")
_BETWEEN_PEOPLE: Final = re.compile(r"[,;]|\band\b|&")


@dataclass(frozen=True, slots=True)
class ProfileValue:
    """A value of an attribute, with the kind of its comparison."""

    kind: ValueKind
    words: tuple[str, ...]
    text: str
    number: float | None = None


@dataclass(frozen=True)
class Name:
    """A name of an entity, with its words and forms."""

    text: str
    kind: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Of its normal form, with known short names for the long ones."""
        return tuple(self.known.split() if name_words(self.text, self.kind) else ())

    @cached_property
    def form(self) -> str:
        """Its normal form."""
        return normal_form(self.text, self.kind)

    @cached_property
    def joined(self) -> str:
        """Its normal form without spaces; numbers stay apart from each other."""
        return re.sub(r"(?<=\d) (?=\d)", "\0", self.form).replace(" ", "").replace("\0", " ")

    @cached_property
    def known(self) -> str:
        """Its normal form with known short names for the long ones."""
        return self.form if self.kind == "person" else known_form(self.form)

    @cached_property
    def mailbox(self) -> tuple[str, ...]:
        """The words of a person's name if it is an e-mail address."""
        return tuple(mailbox(self.text)) if is_email(self.text) else ()

    @cached_property
    def marks(self) -> frozenset[str]:
        """See `marks_of`."""
        return marks_of(self.words)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers that may be a version, a size or a year."""
        return frozenset(word for word in self.words if len(word) < 5 and _NUMBER.fullmatch(word))  # noqa: PLR2004 - longer ones are codes

    @cached_property
    def measures(self) -> frozenset[str]:
        """Numbers with their units, joined if written apart."""
        pairs = zip(self.words, self.words[1:], strict=False)
        apart = {first + second for first, second in pairs if _NUMBER.fullmatch(first) and is_measure(first + second)}
        return frozenset({word for word in self.words if is_measure(word)} | apart)

    @cached_property
    def codes(self) -> frozenset[str]:
        """See `codes_of`."""
        return codes_of(self.text) if has_digit(self.text) else frozenset()

    @cached_property
    def models(self) -> frozenset[str]:
        """See `models_of`."""
        return models_of(self.text) if has_digit(self.text) else frozenset()

    @cached_property
    def legal(self) -> frozenset[str]:
        """See `legal_forms`."""
        return legal_forms(self.text, self.kind)


class Profile:
    """A description prepared for comparison; expensive parts are made at first use."""

    def __init__(self, described: Described) -> None:
        self.kind = described.kind
        texts = dict.fromkeys((described.name, *described.aliases))
        self.names = tuple(Name(text, described.kind) for text in texts)[:_MOST_NAMES]
        self.values: dict[str, ProfileValue] = {}
        for key, text in described.attributes.items():
            if text.strip():
                plain = _KEY_PART.sub("", key.casefold())
                self.values[plain] = _value(key, text)

    def of_kind(self, kind: ValueKind) -> list[ProfileValue]:
        """Return the values that are compared in one way."""
        return [value for value in self.values.values() if value.kind == kind]

    @cached_property
    def is_offer(self) -> bool:
        """True if it is for sale: it has a price."""
        return any(value.kind == "price" for value in self.values.values())

    @property
    def name(self) -> Name:
        """The one it is known by."""
        return self.names[0]

    @cached_property
    def forms(self) -> frozenset[str]:
        """The normal forms of all its names."""
        return frozenset(name.form for name in self.names)

    @cached_property
    def beside(self) -> frozenset[str]:
        """Words of short values, such as a maker or place."""
        return frozenset(word for value in self.values.values() if value.kind == "label" for word in value.words)

    @cached_property
    def told(self) -> frozenset[str]:
        """The words of its long values."""
        return frozenset(word for value in self.values.values() if value.kind == "text" for word in value.words)

    @cached_property
    def every_word(self) -> frozenset[str]:
        """The words and codes of all names and values."""
        words = {word for name in self.names for word in (*name.words, *name.codes)}
        return frozenset(words.union(*(value.words for value in self.values.values())))


def _value(key: str, text: str) -> ProfileValue:
    words = tuple(words_of(text))
    parts = _KEY_PART.split(key.casefold())
    kind = next((_KEYS[part] for part in (*parts, "".join(parts)) if part in _KEYS), None)
    if kind is None:
        kind = "email" if is_email(text) else "text" if len(words) > _LONG else "label"
    number = _NUMBER.search(text.replace(",", "")) if kind in {"price", "year"} else None
    return ProfileValue(kind, words, fold(text).strip(), float(number[0]) if number else None)


def people_in(text: str) -> list[list[str]]:
    """Return the words of each person's name in a list of people."""
    return [words for part in _BETWEEN_PEOPLE.split(text) if (words := words_of(part))]
