"""`WithTraces`: forgetting several records as one change, what that took, and what stays of what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from agent_memory.errors import UnsupportedError
from agent_memory.models import check_id, check_texts
from agent_memory.models.kind import R
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.store.changes import to_add_traces, to_move_out, to_update_many
from agent_memory.store.cleaning import cleaned_fields
from agent_memory.store.past import Taken, taken_with
from agent_memory.store.state import released
from agent_memory.store.threaded import Threaded

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.models import Trace


class WithTraces(Threaded[R], Generic[R]):
    """`Releasing`; what each method promises stands in `agent_memory.store.protocols`."""

    async def forget_many(self, gone: Collection[str], *, reason: str = "") -> list[R]:
        """See `Releasing.forget_many`."""
        check_texts(gone, "ids")
        done = await self._write(
            lambda: _without_secrets(reason),
            self._dropping(lambda replica, why: replica.forget(gone, why)),
        )
        self._worker.submit(self._forget_vectors)
        return done

    async def update_many(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """See `Releasing.update_many`."""
        check_texts(changes, "ids")
        await self._write(
            lambda: {record_id: cleaned_fields(self.kind, fields) for record_id, fields in changes.items()},
            self._dropping(
                lambda replica, cleaned: replica.make(lambda state: to_update_many(state, cleaned)),
            ),
        )

    async def move_out(self, records: Sequence[R], to: str, *, whole: bool = True) -> list[str]:
        """See `Releasing.move_out`."""
        return await self._write(
            lambda: None,
            self._dropping(
                lambda replica, _: replica.make(
                    lambda state: to_move_out(state, records, to, self._clock(), whole=whole)
                )
            ),
        )

    async def taken_with(self, record_id: str) -> Taken[R]:
        """See `Releasing.taken_with`."""
        check_id(record_id)
        try:
            return await self._run(lambda replica: taken_with(replica.refresh(), record_id, replica.log.naming))
        except UnsupportedError:
            return Taken()

    async def traces(self) -> list[Trace]:
        """See `Releasing.traces`."""
        found = await self._look(lambda state: list(state.table.traces.values()))
        return sorted(found, key=lambda trace: trace.at, reverse=True)

    async def add_traces(self, traces: Sequence[Trace]) -> int:
        """See `Releasing.add_traces`."""
        if not traces:
            return 0
        return await self._write(
            lambda: None, lambda replica, _: replica.make(lambda state: to_add_traces(state, traces)), indexed=False
        )

    async def released(self, text: str) -> Trace | None:
        """See `Releasing.released`."""
        check_texts([text], "texts")
        if self._is_open and not self._replica.state.table.traces:
            return None  # as of the last look, which a store has just had
        return await self._look(lambda state: released(state, text))


def _without_secrets(reason: str) -> str:
    cleaned, _ = redact_value(reason, SecretRedactor())
    return str(cleaned)
