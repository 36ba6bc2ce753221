"""Kinds of records: how lower layers handle each type of record."""

from __future__ import annotations

import functools
import pkgutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pydantic

from agent_memory.models.identifiers import new_id
from agent_memory.models.record import Document, Record
from agent_memory.models.validation import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

R = TypeVar("R", bound=Record)

_NEEDED: Final = frozenset({"timestamp", "group"})
"""Fields whose value a record is not shown without: the default would be wrong."""
_ORIGIN: Final = frozenset({"trust", "source", "origin"})


def _list_references(record: Record) -> Iterable[str]:
    """Return the superseded and linked IDs of a record."""
    return [*filter(None, [record.supersedes]), *(link.id for link in record.links)]


@functools.cache
def own_fields(model: type[Record]) -> frozenset[str]:
    """Return the fields that a kind's model adds to `Record`."""
    return frozenset(model.model_fields.keys() - Record.model_fields.keys())


def _build_view(record: Record) -> dict[str, Any]:
    """Return ID, fields of the record's own model, and tags."""
    return {"id": record.id, **record.model_dump(mode="json", include={*own_fields(type(record)), "tags"})}


@dataclass(frozen=True, slots=True)
class Kind(Generic[R]):
    """One kind of record, an argument of journal, storage, search and doctor.

    Attributes:
        name: Name in the journal, such as `memory`.
        model: Model of its records.
        prefix: Prefix of its IDs, such as `mem-`.
        journal: Name of its journal in the agent's folder.
        text: Field with its words, compared for duplicates and with forgotten records.
        prose: Other fields with whole sentences; the remaining fields are labels, such as a tag.
        checks: Returns problems of a record that fits the model, a sentence each.
        references: Returns the IDs of the records that a record points to.
        view: Returns the fields of a record in each answer, as plain JSON, without times, score and trust.
        beside: Returns the other kinds in the same journal, which a compaction folds together.
        withdraw: `module:NAME` of the class with `withdraw(ids, caller)` and `close()` that is made of a service, and
            removes what these records say of records that leave. Empty if they say nothing of others.
        read_ahead: True if a record is indexed in the background after its write, so that the next search need not.
    """

    name: str
    model: type[R]
    prefix: str
    journal: str
    text: str
    prose: tuple[str, ...] = ()
    checks: Callable[[R], Iterable[str]] = lambda _: ()
    references: Callable[[R], Iterable[str]] = _list_references
    view: Callable[[R], dict[str, Any]] = _build_view
    beside: Callable[[], tuple[Kind[Any], ...]] = tuple
    withdraw: str = ""
    read_ahead: bool = True

    @property
    def in_journal(self) -> tuple[Kind[Any], ...]:
        """All kinds of its journal, itself first."""
        return self, *self.beside()

    def new_id(self) -> str:
        """Return a new ID of this kind."""
        return new_id(self.prefix)

    @property
    def place(self) -> str:
        """`module:NAME` of this value, for other processes.

        It is in the module of its model.

        Raises:
            LookupError: The module has no such value.
        """
        module = self.model.__module__
        for name, value in vars(sys.modules[module]).items():
            if value is self:
                return f"{module}:{name}"
        raise LookupError(f"The kind {self.name!r} is under no name in {module}, the module of its model.")

    @staticmethod
    def at(place: str) -> Kind[Any]:
        """Return the kind at `module:NAME`.

        Raises:
            TypeError: The value there is not a kind.
            AttributeError: The module has no such name.
            ImportError: The module does not exist.
        """
        value = pkgutil.resolve_name(place)
        if not isinstance(value, Kind):
            raise TypeError(f"No kind of record at {place}.")
        return value

    def load(self, agent_id: str, record_id: str, record: dict[str, Any]) -> R:
        """Load a record from the journal without fields of newer versions.

        Raises:
            pydantic.ValidationError: The record breaks the data model.
        """
        return self.model.from_record(agent_id, record_id, record)

    def load_known(self, agent_id: str, record_id: str, record: dict[str, Any]) -> R | None:
        """Load a newer version's record without unknown values, or return None.

        Without its origin a record has low trust. It is not shown without its text, time or group.
        """
        values = dict(record)
        while True:
            try:
                return self.load(agent_id, record_id, values)
            except pydantic.ValidationError as error:
                names = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
            if not names or names & _NEEDED or not names <= values.keys():
                return None
            values = {name: value for name, value in values.items() if name not in names}
            if names & _ORIGIN:
                values["trust"] = "low"

    def document(self, record: R) -> Document:
        """Return the indexed parts of a record."""
        return Document(
            record.id,
            self.text_of(record),
            record.facets,
            record.timestamp,
            record.moment,
            "" if record.is_of_document else record.created_by_session,
            record.access_count,
            record.trust,
        )

    def refusal(self, agent_id: str, record_id: str, record: dict[str, Any]) -> str | None:
        """Return the problem of a journal's record, or None."""
        try:
            self.load(agent_id, record_id, record)
        except pydantic.ValidationError as error:
            return describe(error)
        return None

    def text_of(self, record: R) -> str:
        """Return the words of a record."""
        return str(getattr(record, self.text))
