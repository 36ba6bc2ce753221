"""Which record replaced which, as long as both and the moment allow it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent_memory.models import may_stand_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from agent_memory.models import Record


class SealedReplacements(Protocol):
    """What sealed records say they replace."""

    @property
    def replaces_any(self) -> bool:
        """Whether any of them replaces another record."""

    def replacing(self, record_id: str) -> list[str]:
        """Return the ids of those that say they replace a record, in the order of storing."""

    def replaced(self) -> Iterable[str]:
        """Return the id of every record that one of them replaces."""


class Replacements:
    """Answers what replaced a record, from the `supersedes` of the others.

    Args:
        records: All of them, as they are at any time.
        sealed: What those of them replace that are sealed.

    Attributes:
        circles: Records that replace each other all around, or itself, by the newest of them, which counts as replaced
            by none of them: without that all would be hidden. No program of ours writes such a thing.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedReplacements | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._by: dict[str, list[str]] = {}
        self.circles: dict[str, frozenset[str]] = {}

    def __bool__(self) -> bool:
        """Whether anything was ever superseded."""
        return bool(self._by) or (self._sealed is not None and self._sealed.replaces_any)

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Learn which records have come, changed or gone: None for one that is gone."""
        for record_id, record in changed.items():
            if record is not None and record.supersedes:
                by = self._by.setdefault(record.supersedes, [])
                if record_id not in by:
                    by.append(record_id)
        if self:
            for record_id in changed:
                self._look_around(record_id)

    def of(self, record_id: str, now: datetime) -> str | None:
        """Return the newest valid record that supersedes this one, or None; of two with one time, by their ids."""
        circle, older = self.circles.get(record_id, ()), self._records.get(record_id)
        there = (self._records.get(one) for one in self._replacing(record_id) if one not in circle)
        newest: Record | None = None
        for record in there:
            if record is None or record.supersedes != record_id or record.is_expired(now):
                continue
            if _may_replace(record, older) and (newest is None or _age(record) > _age(newest)):
                newest = record
        return newest.id if newest is not None else None

    def all(self, now: datetime) -> dict[str, str]:
        """Return every replaced record with the one that replaces it."""
        every = dict.fromkeys([*(self._sealed.replaced() if self._sealed is not None else ()), *self._by])
        pairs = ((record_id, self.of(record_id, now)) for record_id in every)
        return {record_id: by for record_id, by in pairs if by is not None and record_id in self._records}

    def beside_sealed(self, now: datetime) -> dict[str, bool]:
        """Tell of records whether they are replaced, where what is sealed alone may say it wrongly.

        That is where one that is not sealed says that it replaces them, and in a circle, which is closed by such a one.
        """
        return {one: self.of(one, now) is not None for one in (*self._by, *self.circles)}

    def older(self, record_id: str) -> list[str]:
        """Return the ids that a record replaced, directly or through others, newest first."""
        return [each for each in dict.fromkeys(path(record_id, self._older)) if each != record_id]

    def complaints(self) -> list[str]:
        """Return what is wrong, a sentence for each circle."""
        return [_about_circle(newest, members) for newest, members in self.circles.items()]

    def _look_around(self, record_id: str) -> None:
        """Note whether a record that has come, changed or gone closes a circle, or opens one."""
        opened = [newest for newest, members in self.circles.items() if record_id in members] if self.circles else []
        near = {record_id}.union(*(self.circles.pop(newest) for newest in opened))
        for each in near:
            if self._replacing(each) and (met := circle(each, self._older)):  # nothing replaces what is new
                newest = max(met, key=lambda member: _age(self._records[member]))
                self.circles[newest] = frozenset(met)

    def _replacing(self, record_id: str) -> list[str]:
        """Return the ids of all that say, or once said, that they replace a record."""
        known = self._by.get(record_id, [])
        return known if self._sealed is None else [*self._sealed.replacing(record_id), *known]

    def _older(self, record_id: str) -> str | None:
        """Return the id of the record that one replaced, if that is there."""
        record = self._records.get(record_id)
        older = self._records.get(record.supersedes) if record is not None and record.supersedes else None
        return older.id if older is not None and record is not None and _may_replace(record, older) else None


async def find_current(
    replaced_by: Callable[[Collection[str]], Awaitable[dict[str, str]]], record_ids: Collection[str]
) -> dict[str, str]:
    """Return the current record that replaced each of some records."""
    current = following = await replaced_by(record_ids)
    while following := await replaced_by(following.values()):
        current = {record_id: following.get(newer, newer) for record_id, newer in current.items()}
    return current


def path(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the ids on the way from one on, itself first; the last one stands there twice if the way is a circle."""
    met = {start: None}
    step = following(start)
    while step is not None and step not in met:
        met[step] = None
        step = following(step)
    return [*met, *([step] if step is not None else [])]


def circle(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the ids on the way from one on, if it leads back to that; else nothing."""
    met = path(start, following)
    return met if met[1:] and met[-1] == start else []


def _age(record: Record) -> tuple[datetime, str]:
    return record.timestamp, record.id


def _may_replace(record: Record, older: Record | None) -> bool:
    """Tell whether a record hides one it supersedes."""
    return older is None or may_stand_for(record.trust, older.trust)


def _about_circle(newest: str, circle: frozenset[str]) -> str:
    if len(circle) == 1:
        return f"{newest}: it replaces itself; it is shown all the same"
    return f"{', '.join(sorted(circle))}: they replace each other all around; {newest}, the newest, is shown"
