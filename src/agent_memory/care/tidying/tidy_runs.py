"""`Tidying`: what would be tidied, doing it within a budget, and taking it back."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from agent_memory.care.importance import importance_of
from agent_memory.care.tidying.cleanup_rules import LifecycleSettings
from agent_memory.care.tidying.suggestions import Budget, Suggesting, Suggestion, TidyingPlan, within
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
    """A memory that was left as it is, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What a run did.

    Attributes:
        run: Its record, by whose id it is taken back; None where nothing was to be done.
        done: What was done, in its order.
        left_out: What was suggested and not done.
    """

    run: TidyRun | None
    done: tuple[Suggestion, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def moved(self) -> int:
        """How many memories moved, older versions included."""
        return sum(each.size for each in self.done)


@dataclass(frozen=True, slots=True)
class RestoredRun:
    """What came back of a run.

    Attributes:
        run: Its record.
        restored: The memories that are live again.
        undeleted: Ids of those that are in the archive again.
        left_out: What did not come back.
    """

    run: TidyRun
    restored: tuple[Memory, ...] = ()
    undeleted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class Tidying:
    """Keeps one agent's memory small: `plan` looks, `apply` does what a plan says, `undo` takes it back.

    Args:
        archive: Where memories are put; its service and clock are used. It stays open.
        settings: The rules; the defaults when omitted.
        importance: Returns the importance of a memory at a moment, 0..1.
    """

    def __init__(
        self,
        archive: Archive,
        settings: LifecycleSettings | None = None,
        importance: Importance = importance_of,
    ) -> None:
        self._archive, self._service = archive, archive.service
        self._settings = settings or LifecycleSettings()
        self._importance = importance

    async def plan(self, now: datetime | None = None, *, budget: int | None = None) -> TidyingPlan:
        """Return what would be done; changes nothing.

        Args:
            now: The moment it is judged from; the present when omitted.
            budget: How many memories move at most; that of the settings when omitted.

        Raises:
            ValidationError: The budget is none.
            StorageError: The memories cannot be read.
        """
        if budget is not None and budget < 1:
            raise ValidationError(f"A budget is a number from 1 on, got {budget}; nothing was changed.", code="usage")
        now = self._archive.clock() if now is None else now
        memories, archived = await self._service.searcher.list_all(), await self._archive.everything()
        suggested = (await self._suggesting(memories, now)).all(archived)
        most = Budget.of(len(memories), self._settings.budget if budget is None else budget)
        taken, waiting = within(suggested, most)
        return TidyingPlan(now, tuple(taken), most, waiting, len(memories), len(archived))

    async def apply(self, plan: TidyingPlan, caller: Caller = NOBODY, *, delete: bool = False) -> Applied:
        """Do what a plan says; what was used or changed since it was made is left out.

        Args:
            plan: What to do.
            caller: The session that asks.
            delete: Also delete from the archive what the plan proposes to; without it nothing is deleted.

        Raises:
            ValidationError: The caller may not do it to one of the memories (`needs_user`); nothing was done.
            StorageError: What was done before is safe and can be undone.
        """
        await self._archive.mend()
        wanted = [each for each in plan.suggestions if delete or each.action != "delete"]
        live = [one.id for each in wanted if each.action != "delete" for one in (each.memory, *each.older)]
        await self._service.writer.check_moving(live, caller)
        todo, left = await self._rechecked(wanted, plan.made_at)
        if not todo:
            return Applied(None, (), tuple(left))
        run = TidyRun(
            agent_id=self._service.agent_id,
            timestamp=self._archive.clock(),
            created_by_session=caller.session_id,
            said=_said(todo),
            entries=[entry for each in todo for entry in _entries(each)],
        )
        await self._archive.runs.store(run)
        done = await self._done(todo, run, caller)
        moved = {each.memory.id for each in done}
        left += [LeftOut(each.memory.id, _USED) for each in todo if each.memory.id not in moved]
        if not done:
            await self._archive.runs.forget_many([run.id])
            return Applied(None, (), tuple(left))
        run = await self._close(run, done, len(left), caller)
        return Applied(run, tuple(done), tuple(left))

    async def undo(self, run_id: str | None = None, caller: Caller = NOBODY) -> RestoredRun:
        """Take a run back: what it put into the archive comes back with all its fields, what it deleted returns there.

        Args:
            run_id: Which; the last one that was not taken back when omitted.
            caller: The session that asks.

        Raises:
            UnknownIdError: There is no such run, or none at all.
            ValidationError: It was taken back already.
            StorageError: What came back before is safe; doing it again does the rest.
        """
        run = await self._run(run_id)
        await self._archive.mend()
        here = {each.id: each for each in await self._archive.everything()}
        moved = [each for each in run.entries if each.action != "delete"]
        back = [each.id for each in moved if each.id in here and here[each.id].run == run.id]
        there = await self._service.storage.texts_of([each.id for each in moved])
        restored = await self._archive.restore(back, caller) if back else []
        await self._untag(moved, caller)
        left = [LeftOut(each.id, _GONE) for each in moved if each.id not in here and each.id not in there]
        undeleted = []
        for each in run.entries:
            if each.action == "delete" and each.id not in here:
                if await self._archive.get(each.id) is not None or await self._archive.undelete(each.id):
                    undeleted.append(each.id)
                else:
                    left.append(LeftOut(each.id, _OVER))
        run = await self._archive.runs.update(run.id, {"state": "undone"})
        counts = {"archived": len(restored), "merged": sum(each.action == "merge" for each in moved)}
        await self._tell(run, "undone", counts, len(undeleted), len(left), caller)
        return RestoredRun(run, tuple(restored), tuple(undeleted), tuple(left))

    async def runs(self) -> list[TidyRun]:
        """Return what was done so far, the last first."""
        if not self._archive.exists():
            return []
        known = [(each.timestamp, place, each) for place, each in enumerate(await self._stored())]
        return [each for *_, each in sorted(known, key=itemgetter(0, 1), reverse=True)]

    async def _stored(self) -> list[TidyRun]:
        return [each async for each in self._archive.runs.iter_all()]

    # -- planning -----------------------------------------------------------------------------------------------------

    async def _suggesting(self, memories: Sequence[Memory], now: datetime) -> Suggesting:
        replaced = await self._service.storage.replaced_by([memory.id for memory in memories])
        return Suggesting(memories, replaced, self._settings, now, self._importance)

    async def _rechecked(
        self, wanted: Sequence[Suggestion], made_at: datetime
    ) -> tuple[list[Suggestion], list[LeftOut]]:
        """Return what may still be done, and what may not, with the reason."""
        suggesting = await self._suggesting(await self._service.searcher.list_all(), made_at)
        todo: list[Suggestion] = []
        left: list[LeftOut] = []
        for each in wanted:
            chain = [each.memory, *each.older]
            of = self._archive.get if each.action == "delete" else self._service.storage.get
            now_there = [await of(memory.id) for memory in chain]
            keeper = await self._service.storage.get(each.into.id) if each.into is not None else None
            if now_there != chain or (
                each.into is not None and (keeper is None or keeper.content != each.into.content)
            ):
                left.append(LeftOut(each.memory.id, _USED))
            elif each.action in {"archive", "merge"} and suggesting.stays(chain, each.rule):
                left.append(LeftOut(each.memory.id, _KEPT))
            else:
                todo.append(each)
        return todo, left

    # -- doing --------------------------------------------------------------------------------------------------------

    async def _done(self, todo: Sequence[Suggestion], run: TidyRun, caller: Caller) -> list[Suggestion]:
        put = await self._archive.put([one for each in todo for one in _archived(each, run)], caller)
        gone = {each.id for each in put}
        deleted = set(await self._archive.delete([each.memory.id for each in todo if each.action == "delete"]))
        done = [each for each in todo if each.memory.id in (deleted if each.action == "delete" else gone)]
        for each in done:
            if each.into is not None and (tags := _new_tags(each)):
                before = await self._service.get(each.into.id)
                union = list(dict.fromkeys([*before.tags, *tags]))
                await self._service.update(each.into.id, {"tags": union[:MAX_TAGS]}, caller)
        return done

    async def _close(self, run: TidyRun, done: Sequence[Suggestion], left: int, caller: Caller) -> TidyRun:
        entries = [entry for each in done for entry in _entries(each)]
        changes = {"state": "done", "said": _said(done), "entries": [each.model_dump() for each in entries]}
        run = await self._archive.runs.update(run.id, changes)
        deleted = sum(each.action == "delete" for each in entries)
        counts = {"archived": len(entries) - deleted, "merged": sum(each.action == "merge" for each in done)}
        await self._tell(run, "done", counts, deleted, left, caller)
        return run

    async def _tell(
        self, run: TidyRun, outcome: str, counts: dict[str, int], deleted: int, left: int, caller: Caller
    ) -> None:
        fields = {"run_id": run.id, "outcome": outcome, **counts, "deleted": deleted, "left_out": left}
        await self._service.report("memory:tidied", caller, **fields)

    # -- taking back --------------------------------------------------------------------------------------------------

    async def _run(self, run_id: str | None) -> TidyRun:
        known = await self.runs()
        if run_id is None:
            found = next((each for each in known if each.state != "undone"), None)
        else:
            found = next((each for each in known if each.id == run_id), None)
        if found is None:
            named = f"There is no run {quoted(run_id)}" if run_id else "There is no run to take back"
            raise UnknownIdError(
                f"{named}; nothing was changed.", recovery="`agent-memory archive tidy --runs` lists them."
            )
        if found.state == "undone":
            raise ValidationError(f"{found.id} was taken back already; nothing was changed.", code="already_undone")
        return found

    async def _untag(self, entries: Sequence[TidyEntry], caller: Caller) -> None:
        """Take from what others were merged into the tags that it got from them."""
        for each in entries:
            if each.into is None or not each.tags:
                continue
            keeper = await self._service.storage.get(each.into)
            if keeper is None:  # it was archived by a later run
                await self._archive.untag(each.into, each.tags)
            else:
                tags = [tag for tag in keeper.tags if tag not in each.tags]
                await self._service.update(keeper.id, {"tags": tags}, caller, may_have_expired=True)


def _archived(suggestion: Suggestion, run: TidyRun) -> list[ArchivedMemory]:
    if suggestion.action == "delete":
        return []
    said = {"archived_at": run.timestamp, "rule": suggestion.rule, "run": run.id}
    into = suggestion.into.id if suggestion.into is not None else None
    head = ArchivedMemory.of(suggestion.memory, **said, why=suggestion.why, merged_into=into)
    return [
        head,
        *(ArchivedMemory.of(each, **said, why=f"replaced by {suggestion.memory.id}") for each in suggestion.older),
    ]


def _entries(suggestion: Suggestion) -> list[TidyEntry]:
    into = suggestion.into.id if suggestion.into is not None else None
    head = TidyEntry(
        action=suggestion.action, id=suggestion.memory.id, rule=suggestion.rule, into=into, tags=_new_tags(suggestion)
    )
    if suggestion.action == "delete":
        return [head]
    return [head, *(TidyEntry(action="archive", id=each.id, rule=suggestion.rule) for each in suggestion.older)]


def _new_tags(suggestion: Suggestion) -> list[str]:
    """Return the tags that a memory gets from one that is merged into it; none from a stranger's words."""
    into = suggestion.into
    if into is None or not may_stand_for(suggestion.memory.trust, into.trust):
        return []
    return [tag for tag in suggestion.memory.tags if tag not in into.tags][: MAX_TAGS - len(into.tags)]


def _said(done: Sequence[Suggestion]) -> str:
    archived = sum(each.size for each in done if each.action != "delete")
    deleted = sum(each.size for each in done if each.action == "delete")
    parts = [f"archived {counted(archived, 'memory', 'memories')}"]
    merged = sum(each.action == "merge" for each in done)
    parts += [f"of which {merged} say what others say"] if merged else []
    parts += [f"deleted {counted(deleted, 'memory', 'memories')} from the archive"] if deleted else []
    return ", ".join(parts)
