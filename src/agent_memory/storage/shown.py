"""`Shown`: what a scratchpad is chosen from, known without reading the log where that is certain."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Generic

from agent_memory.errors import StorageError
from agent_memory.models import may_stand_for
from agent_memory.models.kind import R, own_fields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.storage.recency import Order
    from agent_memory.storage.replica import Replica
    from agent_memory.storage.shortlist import Shortlist


class Shown(Generic[R]):
    """Remembers what was asked for and what was true. Blocking, but for `is_known_true`.

    Args:
        shortlist: The file that a start reads instead of the journal; None where there is none.
    """

    def __init__(self, shortlist: Shortlist[R] | None) -> None:
        self._shortlist = shortlist
        self._asked: Order | None = None
        self._true: tuple[object, frozenset[str]] = (None, frozenset())

    @property
    def wants_keeping(self) -> bool:
        """Whether `keep` has something to keep."""
        return self._asked is not None and self._shortlist is not None

    def recent(self, replica: Replica[R], order: Order) -> list[R]:
        """Return what a scratchpad is chosen from."""
        self._asked = order
        looked = replica.log.looks_like()
        found = None
        if self._shortlist is not None and not replica.log.watermark[1]:
            known = self._shortlist.read(order, replica.clock())
            found = known if known is not None and all(map(order.admits, known)) else None
        if found is None:
            found = replica.refresh().recent(order, replica.clock())
        self._true = (looked, frozenset(record.id for record in found))
        return found

    def is_known_true(self, replica: Replica[R], shown: Sequence[R], now: datetime) -> bool:
        """Tell whether records may be shown on since nothing was written; some 2 µs, which each request pays."""
        looked, true = self._true
        same = looked is not None and looked == replica.log.looks_like()
        return same and all(record.id in true and not record.is_expired(now) for record in shown)

    def still_true(self, replica: Replica[R], shown: Sequence[R]) -> bool:
        """Tell whether records may be shown on, whoever changed something meanwhile."""
        looked, state, now = replica.log.looks_like(), replica.refresh(), replica.clock()
        known = ((each, state.get(each.id)) for each in shown)
        if not all(one is not None and state.is_valid(one, now) and _says_the_same(each, one) for each, one in known):
            return False
        self._true = (looked, frozenset(record.id for record in shown))
        return True

    def keep(self, replica: Replica[R]) -> None:
        """Keep what the next start needs, unless this one read nothing or was asked for nothing."""
        order, self._asked = self._asked, None
        if order is None or self._shortlist is None or not replica.log.watermark[1]:
            return
        with contextlib.suppress(StorageError):
            state = replica.refresh()
            self._shortlist.write(order, state, replica.log.watermark[1], replica.clock())

    def drop(self) -> None:
        """Remove what is kept: something in it was forgotten or reworded."""
        if self._shortlist is not None:
            self._shortlist.drop()


def _says_the_same(shown: R, now: R) -> bool:
    """Tell whether two versions say the same to a reader; pins, places and counts do not matter."""
    said = ("tags", *own_fields(type(now)))
    return may_stand_for(now.trust, shown.trust) and all(getattr(shown, name) == getattr(now, name) for name in said)
