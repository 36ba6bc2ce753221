"""`Kind`: what the layers below the service must know of one kind of record, as a value."""

from __future__ import annotations

import functools
import pkgutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic

from agent_memory.models.document import Document
from agent_memory.models.identifiers import new_id
from agent_memory.models.invalid import describe
from agent_memory.models.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

R = TypeVar("R", bound=Record)


def references_of(record: Record) -> Iterable[str]:
    """Return the ids in the fields that every record has: what it supersedes, and what it is linked to."""
    return [*filter(None, [record.supersedes]), *(link.id for link in record.links)]


@functools.cache
def own_fields(model: type[Record]) -> frozenset[str]:
    """Return the fields that a kind's model adds to those of every record."""
    return frozenset(model.model_fields.keys() - Record.model_fields.keys())


def view_of(record: Record) -> dict[str, Any]:
    """Return the id, the fields that its own model adds, and the tags."""
    return {"id": record.id, **record.model_dump(mode="json", include={*own_fields(type(record)), "tags"})}


@dataclass(frozen=True, slots=True)
class Kind(Generic[R]):
    """One kind of record. Journal, storage, search and doctor take it as an argument and name none.

    Attributes:
        name: As it stands in the journal, such as `memory`.
        model: The data model.
        prefix: With which its ids begin, such as `mem-`.
        journal: Name of the file its records are kept in, in the agent's folder.
        text: The field with its words: what says the same as another, and what is known of one that was forgotten.
        prose: Other fields with whole sentences; what is in neither is a label, such as a tag.
        checks: Returns what is wrong with a record although it fits the model, a sentence each.
        references: Returns the ids of the records that a record points to.
        view: Returns what each answer shows of a record, as plain JSON; whoever answers adds times, score and trust.
        beside: Returns the other kinds whose records lie in the same file, so that a compaction folds all of them.
        read_ahead: Whether the words of a record are read behind its write, so that the next search need not; for
            kinds that are looked through by name alone that is work for nobody.
    """

    name: str
    model: type[R]
    prefix: str
    journal: str
    text: str
    prose: tuple[str, ...] = ()
    checks: Callable[[R], Iterable[str]] = lambda _: ()
    references: Callable[[R], Iterable[str]] = references_of
    view: Callable[[R], dict[str, Any]] = view_of
    beside: Callable[[], tuple[Kind[Any], ...]] = tuple
    read_ahead: bool = True

    @property
    def in_journal(self) -> tuple[Kind[Any], ...]:
        """All kinds whose records lie in its journal, itself first."""
        return self, *self.beside()

    def new_id(self) -> str:
        """Return a fresh id of this kind."""
        return new_id(self.prefix)

    @property
    def place(self) -> str:
        """Where another process finds this value: `module:NAME`; it stands in the module of its model.

        Raises:
            LookupError: It does not.
        """
        module = self.model.__module__
        for name, value in vars(sys.modules[module]).items():
            if value is self:
                return f"{module}:{name}"
        raise LookupError(f"The kind {self.name!r} stands under no name in {module}, the module of its model.")

    @staticmethod
    def at(place: str) -> Kind[Any]:
        """Return the kind that stands at `module:NAME`.

        Raises:
            TypeError: What stands there is none.
            AttributeError: Nothing stands there.
            ImportError: There is no such module.
        """
        found = pkgutil.resolve_name(place)
        if not isinstance(found, Kind):
            raise TypeError(f"There is no kind of record at {place}.")
        return found

    def load(self, agent_id: str, record_id: str, record: dict[str, Any]) -> R:
        """Rebuild a record from the journal; fields of a newer version are left aside.

        Raises:
            pydantic.ValidationError: It breaks the data model.
        """
        return self.model.from_record(agent_id, record_id, record)

    def document(self, record: R) -> Document:
        """Return what is indexed of a record."""
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
        """Return why a record of the journal breaks the data model, or None."""
        try:
            self.load(agent_id, record_id, record)
        except pydantic.ValidationError as error:
            return describe(error)
        return None

    def text_of(self, record: R) -> str:
        """Return the words of a record."""
        return str(getattr(record, self.text))
