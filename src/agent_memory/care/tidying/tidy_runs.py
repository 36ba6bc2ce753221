"""`Tidying`: plans, applies and undoes runs within a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.care.importance import importance_of
from agent_memory.care.tidying.cleanup_rules import LifecycleSettings
from agent_memory.care.tidying.suggestions import SuggestionBuilder, TidyBudget, TidyingPlan, TidySuggestion, within
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.memory import NOBODY
from agent_memory.models import MAX_TAGS, ArchivedMemory, TidyEntry, TidyRun, may_stand_for
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.care.archive import Archive
    from agent_memory.care.tidying.cleanup_rules import Importance
    from agent_memory.memory import Caller
    from agent_memory.models import Memory


_USED: Final = "it was used or changed since it was suggested"
_KEPT: Final = "it is needed by now: pinned, linked to, in the scratchpad, or waiting for a decision"
_GONE: Final = "it is not in the archive any more"
_OVER: Final = "its text is gone for good"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Memory that was left as it is, with the reason."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class AppliedRun:
    """Result of a run.

    Attributes:
        run: Record of the run for `undo`, or None.
        done: Applied proposals in order.
        left_out: Proposals that were not applied.
    """

    run: TidyRun | None
    done: tuple[TidySuggestion, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def moved(self) -> int:
        """Number of moved memories, older versions included."""
        return sum(suggestion.size for suggestion in self.done)


@dataclass(frozen=True, slots=True)
class RestoredRun:
    """Result of undoing a run.

    Attributes:
        run: Record of the run.
        restored: Memories that are live again.
        undeleted: IDs of memories that are archived again.
        left_out: Memories that were not restored.
    """

    run: TidyRun
    restored: tuple[Memory, ...] = ()
    undeleted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class Tidying:
    """Tidies one agent's memory: `plan`, `apply`, `undo`.

    Args:
        archive: Open archive, whose service and clock are used.
        settings: Rules of proposals, defaults if omitted.
        importance: Returns the importance of a memory at a moment, 0..1.
    """

    def __init__(
        self, archive: Archive, settings: LifecycleSettings | None = None, importance: Importance = importance_of
    ) -> None:
        self._archive, self._service = archive, archive.service
        self._settings = settings or LifecycleSettings()
        self._importance = importance

    async def plan(self, now: datetime | None = None, *, budget: int | None = None) -> TidyingPlan:
        """Return proposals; changes nothing.

        Args:
            now: Moment of judging, by default the present.
            budget: Maximum number of moved memories, by default the settings'.

        Raises:
            ValidationError: The budget is less than 1.
            StorageError: The memories cannot be read.
        """
        if budget is not None and budget < 1:
            raise ValidationError(f"A budget is a number from 1 on, got {budget}; nothing was changed.", code="usage")
        now = self._archive.clock() if now is None else now
        memories, archived = await self._service.searcher.list_all(), await self._archive.everything()
        suggested = (await self._suggesting(memories, now)).all(archived)
        most = TidyBudget.of(len(memories), self._settings.budget if budget is None else budget)
        taken, waiting = within(suggested, most)
        return TidyingPlan(now, tuple(taken), most, waiting, len(memories), len(archived))

    async def apply(self, plan: TidyingPlan, caller: Caller = NOBODY, *, delete: bool = False) -> AppliedRun:
        """Apply a plan, except to memories used or changed since.

        Args:
            plan: Plan to apply.
            caller: Calling session.
            delete: True to apply deletions from the archive too.

        Raises:
            ValidationError: The caller may not do it to one of the memories (`needs_user`); nothing was done.
            StorageError: What was done before is safe and can be undone.
        """
        await self._archive.mend()
        wanted = [suggestion for suggestion in plan.suggestions if delete or suggestion.action != "delete"]
        moving = [suggestion for suggestion in wanted if suggestion.action != "delete"]
        live = [memory.id for suggestion in moving for memory in suggestion.chain]
        await self._service.writer.check_moving(live, caller)
        todo, left_out = await self._recheck(wanted, plan.made_at)
        if not todo:
            return AppliedRun(None, (), tuple(left_out))
        run = TidyRun(
            agent_id=self._service.agent_id,
            timestamp=self._archive.clock(),
            created_by_session=caller.session_id,
            said=_summarize(todo),
            entries=[entry for suggestion in todo for entry in _entries(suggestion)],
        )
        await self._archive.runs.store(run)
        done = await self._done(todo, run, caller)
        moved = {suggestion.memory.id for suggestion in done}
        left_out += [LeftOut(suggestion.memory.id, _USED) for suggestion in todo if suggestion.memory.id not in moved]
        if not done:
            await self._archive.runs.forget_many([run.id])
            return AppliedRun(None, (), tuple(left_out))
        run = await self._close(run, done, len(left_out), caller)
        return AppliedRun(run, tuple(done), tuple(left_out))

    async def undo(self, run_id: str | None = None, caller: Caller = NOBODY) -> RestoredRun:
        """Undo a run: restore archived and deleted memories with all fields.

        Args:
            run_id: ID of the run, by default the last one that was not undone.
            caller: Calling session.

        Raises:
            UnknownIdError: The run does not exist.
            ValidationError: It was taken back already.
            StorageError: What came back before is safe; doing it again does the rest.
        """
        run = await self._run(run_id)
        await self._archive.mend()
        archived = {entry.id: entry for entry in await self._archive.everything()}
        moved = [entry for entry in run.entries if entry.action != "delete"]
        back = [entry.id for entry in moved if entry.id in archived and archived[entry.id].run == run.id]
        live = await self._service.storage.texts_of([entry.id for entry in moved])
        restored = await self._archive.restore(back, caller) if back else []
        await self._untag(moved, caller)
        left_out = [LeftOut(entry.id, _GONE) for entry in moved if entry.id not in archived and entry.id not in live]
        undeleted = []
        for entry in run.entries:
            if entry.action == "delete" and entry.id not in archived:
                if await self._archive.get(entry.id) is not None or await self._archive.undelete(entry.id):
                    undeleted.append(entry.id)
                else:
                    left_out.append(LeftOut(entry.id, _OVER))
        run = await self._archive.runs.update(run.id, {"state": "undone"})
        merged = sum(entry.action == "merge" for entry in moved)
        counts = {"archived": len(restored), "merged": merged, "deleted": len(undeleted), "left_out": len(left_out)}
        await self._service.report("memory:tidied", caller, run_id=run.id, outcome="undone", **counts)
        return RestoredRun(run, tuple(restored), tuple(undeleted), tuple(left_out))

    async def runs(self) -> list[TidyRun]:
        """Return all runs, last first."""
        if not self._archive.exists():
            return []
        runs = [run async for run in self._archive.runs.iter_all()]
        runs.reverse()  # of equal times the later one is first
        return sorted(runs, key=lambda run: run.timestamp, reverse=True)

    # -- planning -----------------------------------------------------------------------------------------------------

    async def _suggesting(self, memories: Sequence[Memory], now: datetime) -> SuggestionBuilder:
        replaced = await self._service.storage.replaced_by([memory.id for memory in memories])
        return SuggestionBuilder(memories, replaced, self._settings, now, self._importance)

    async def _recheck(
        self, wanted: Sequence[TidySuggestion], made_at: datetime
    ) -> tuple[list[TidySuggestion], list[LeftOut]]:
        """Return proposals that still apply, and the others with reasons."""
        suggesting = await self._suggesting(await self._service.searcher.list_all(), made_at)
        todo: list[TidySuggestion] = []
        left_out: list[LeftOut] = []
        for suggestion in wanted:
            chain, into = suggestion.chain, suggestion.into
            get = self._archive.get if suggestion.action == "delete" else self._service.storage.get
            keeper = await self._service.storage.get(into.id) if into is not None else None
            if [await get(memory.id) for memory in chain] != chain or (
                into is not None and (keeper is None or keeper.content != into.content)
            ):
                left_out.append(LeftOut(suggestion.memory.id, _USED))
            elif suggestion.action in {"archive", "merge"} and suggesting.stays(chain, suggestion.rule):
                left_out.append(LeftOut(suggestion.memory.id, _KEPT))
            else:
                todo.append(suggestion)
        return todo, left_out

    # -- doing --------------------------------------------------------------------------------------------------------

    async def _done(self, todo: Sequence[TidySuggestion], run: TidyRun, caller: Caller) -> list[TidySuggestion]:
        records = [record for suggestion in todo for record in _build_archived(suggestion, run)]
        archived = {record.id for record in await self._archive.put(records, caller)}
        deletable = [suggestion.memory.id for suggestion in todo if suggestion.action == "delete"]
        deleted = set(await self._archive.delete(deletable))
        done = [item for item in todo if item.memory.id in (deleted if item.action == "delete" else archived)]
        for suggestion in done:
            if suggestion.into is not None and (tags := _new_tags(suggestion)):
                before = await self._service.get(suggestion.into.id)
                union = list(dict.fromkeys([*before.tags, *tags]))
                await self._service.update(suggestion.into.id, {"tags": union[:MAX_TAGS]}, caller)
        return done

    async def _close(self, run: TidyRun, done: Sequence[TidySuggestion], left_out: int, caller: Caller) -> TidyRun:
        entries = [entry for suggestion in done for entry in _entries(suggestion)]
        changes = {"state": "done", "said": _summarize(done), "entries": [entry.model_dump() for entry in entries]}
        run = await self._archive.runs.update(run.id, changes)
        deleted, merged = (sum(entry.action == action for entry in entries) for action in ("delete", "merge"))
        counts = {"archived": len(entries) - deleted, "merged": merged, "deleted": deleted, "left_out": left_out}
        await self._service.report("memory:tidied", caller, run_id=run.id, outcome="done", **counts)
        return run

    # -- taking back --------------------------------------------------------------------------------------------------

    async def _run(self, run_id: str | None) -> TidyRun:
        runs = await self.runs()
        matching = (run for run in runs if (run.state != "undone" if run_id is None else run.id == run_id))
        if (chosen := next(matching, None)) is None:
            named = f"No run {quoted(run_id)}" if run_id else "No run to take back"
            raise UnknownIdError(
                f"{named}; nothing was changed.", recovery="`agent-memory archive tidy --runs` lists them."
            )
        if chosen.state == "undone":
            raise ValidationError(f"{chosen.id} was taken back already; nothing was changed.", code="already_undone")
        return chosen

    async def _untag(self, entries: Sequence[TidyEntry], caller: Caller) -> None:
        """Remove tags that merged memories added to others."""
        for entry in entries:
            if entry.into is None or not entry.tags:
                continue
            keeper = await self._service.storage.get(entry.into)
            if keeper is None:  # it was archived by a later run
                await self._archive.untag(entry.into, entry.tags)
            else:
                tags = [tag for tag in keeper.tags if tag not in entry.tags]
                await self._service.update(keeper.id, {"tags": tags}, caller, may_have_expired=True)


def _build_archived(suggestion: TidySuggestion, run: TidyRun) -> list[ArchivedMemory]:
    if suggestion.action == "delete":
        return []
    fields = {"archived_at": run.timestamp, "rule": suggestion.rule, "run": run.id}
    into = suggestion.into.id if suggestion.into is not None else None
    head = ArchivedMemory.of(suggestion.memory, **fields, why=suggestion.why, merged_into=into)
    why = f"replaced by {suggestion.memory.id}"
    return [head, *(ArchivedMemory.of(memory, **fields, why=why) for memory in suggestion.older)]


def _entries(suggestion: TidySuggestion) -> list[TidyEntry]:
    into, tags = suggestion.into.id if suggestion.into is not None else None, _new_tags(suggestion)
    head = TidyEntry(action=suggestion.action, id=suggestion.memory.id, rule=suggestion.rule, into=into, tags=tags)
    if suggestion.action == "delete":
        return [head]
    return [head, *(TidyEntry(action="archive", id=memory.id, rule=suggestion.rule) for memory in suggestion.older)]


def _new_tags(suggestion: TidySuggestion) -> list[str]:
    """Return tags that a merge adds; none from an untrusted source."""
    into = suggestion.into
    if into is None or not may_stand_for(suggestion.memory.trust, into.trust):
        return []
    return [tag for tag in suggestion.memory.tags if tag not in into.tags][: MAX_TAGS - len(into.tags)]


def _summarize(done: Sequence[TidySuggestion]) -> str:
    archived = sum(suggestion.size for suggestion in done if suggestion.action != "delete")
    deleted = sum(suggestion.size for suggestion in done if suggestion.action == "delete")
    parts = [f"archived {counted(archived, 'memory', 'memories')}"]
    merged = sum(suggestion.action == "merge" for suggestion in done)
    parts += [f"of which {merged} say what others say"] if merged else []
    parts += [f"deleted {counted(deleted, 'memory', 'memories')} from the archive"] if deleted else []
    return ", ".join(parts)
