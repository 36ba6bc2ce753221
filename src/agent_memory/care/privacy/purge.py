"""`Purging`: deletes records from every file of an agent for good.

Each step can be repeated:

1. The records are forgotten, as by `forget`: no session finds them.
2. Their IDs and keyed fingerprints of their texts are written to `purged.yaml`, and synced. From then on nothing
   restores them: no `restore`, import, backup, capture, or session that had them in memory.
3. Backups, scratchpad, pages and quarantined files are rewritten without them, then the journals; derived files are
   deleted.
4. Every byte of every file is searched for the texts.
5. The receipt is written, which ends the purge.

After a crash the next process continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from agent_memory.care.backups.admission import AdmissionFilter
from agent_memory.care.privacy import erasure
from agent_memory.care.privacy.purge_survey import PurgeSurvey
from agent_memory.care.privacy.text_search import FileWithWords, search
from agent_memory.errors import BusyError, UnsupportedError, ValidationError
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import SCRATCHPAD
from agent_memory.journal import Purge, PurgeList
from agent_memory.journal.agent_file import note_unnamed
from agent_memory.journal.compaction import remove_records
from agent_memory.journal.format import MalformedLineError, decode_entry
from agent_memory.journal.purged_spans import PurgedSpans, is_distinctive
from agent_memory.memory import NOBODY
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.scratchpad_file import PadFile
from agent_memory.models import MEMORY, Clock, to_text, utc_now
from agent_memory.redaction import quoted
from agent_memory.registry import list_uncleaned
from agent_memory.settings import PERSON_SECONDS
from agent_memory.store.deletion_states import check_transition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory import Caller, MemoryService


BEYOND_REACH = (
    "exports and copies in other places",
    "earlier states kept by the file system, and swap",
    "the transcripts of the host, and what a model was shown",
    "sessions that are running, until their next call",
    "other agents, and workspaces",
)
"""What no purge reaches; every receipt names it."""
_INDEX = "the numbers of the vectors in the index of the vector engine, until `agent-memory index rebuild`"
"""Where there is such an index, this too."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """Records and texts that a purge would delete.

    Attributes:
        ids: IDs of records to purge, with older versions, equal ones, and records that depend on them alone.
        texts: Texts to search elsewhere: all texts of the records and quotes of items, but only items of depending
            records.
        same: IDs of records that were not requested and have equal texts.
        resting: IDs of records that depend on the others alone, and of summaries and relations that repeat their words.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    same: tuple[str, ...] = ()
    resting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """Result of a purge.

    Attributes:
        purge_id: ID of the purge.
        at: Moment of its end, as text.
        records: IDs, and keyed fingerprints of the texts that cannot be tested against words.
        files: Names of rewritten and deleted files.
        found: Files with remaining texts or changes; empty if clean.
        failed: Failures in sentences.
        searched: Number of searched texts; of signatures if an interrupted purge has no texts.
        unsearched: Number of texts too short for a search; only their own lines are deleted.
        beyond: Places that no purge reaches.
    """

    purge_id: str
    at: str
    records: dict[str, list[str]]
    files: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    searched: int = 0
    unsearched: int = 0
    beyond: tuple[str, ...] = BEYOND_REACH

    @property
    def is_clean(self) -> bool:
        """True if nothing was found afterwards and nothing failed."""
        return not self.found and not self.failed


class Purging:
    """Purges for one agent.

    Args:
        service: Service of the agent, which forgets the records.
        clock: Source of the present.

    Raises:
        UnsupportedError: The memories lie on a server.
    """

    def __init__(self, service: MemoryService, *, clock: Clock = utc_now) -> None:
        folder = service.folder
        if folder is None:
            raise UnsupportedError(
                "These memories lie on a server; only files can be purged.",
                recovery="Forget them, and have whoever runs the server remove them from its copies.",
            )
        self._service, self._clock = service, clock
        self._folder: AgentFolder = folder
        self.list = PurgeList(folder.path)

    async def plan(self, record_ids: Iterable[str]) -> PurgePlan:
        """Return the plan of a purge; changes nothing.

        Args:
            record_ids: IDs of records of any kind, live, forgotten, archived or purged before with failures.

        Raises:
            UnknownIdError: No file knows one of them.
            StorageError: A journal cannot be read.
        """
        wanted = list(dict.fromkeys(record_ids))
        older = [
            older_id
            for record_id in wanted
            if record_id.startswith(MEMORY.prefix)
            for older_id in await self._older(record_id)
        ]
        return await asyncio.to_thread(self._plan, wanted, older)

    @staticmethod
    def check_caller(caller: Caller) -> None:
        """Refuse a caller that is bound to a group.

        Raises:
            ValidationError: It does not see all that would lose words (`of_a_group`).
        """
        if caller.group is not None:
            raise ValidationError(
                "Nothing was purged: this conversation belongs to a group, and a purge deletes words in all groups.",
                code="of_a_group",
                recovery="Forget it here. A person can run `agent-memory purge ID`.",
            )

    async def run(self, plan: PurgePlan, caller: Caller = NOBODY) -> PurgeReceipt:
        """Purge the records of a plan.

        Raises:
            ValidationError: The caller may not forget one of them (`needs_user`), or is bound to a group and so does
                not see all that would lose words (`of_a_group`); nothing was purged.
            UnsupportedError: A newer version wrote about one of them; it is forgotten, and its text is there still.
            StorageError: It is not complete: a repetition continues.
        """
        self.check_caller(caller)
        await self._service.writer.deletion.forget_many(
            [record_id for record_id in plan.ids if record_id.startswith(MEMORY.prefix)], caller
        )
        further_ids = [record_id for record_id in plan.ids if not record_id.startswith(MEMORY.prefix)]
        await attach_withdrawals(self._service).monitor.withdraw(further_ids, caller, is_strict=True)
        await self._service.settle()
        purge = await asyncio.to_thread(self._begin, plan)
        return await self._go_on(purge, plan.texts, caller)

    async def finish(self, caller: Caller = NOBODY) -> list[PurgeReceipt]:
        """Finish interrupted purges; return their receipts.

        Raises:
            UnsupportedError, StorageError: As `run`.
        """
        return [await self._go_on(purge, (), caller) for purge in await asyncio.to_thread(self.list.list_unfinished)]

    async def verify(self, texts: Collection[str] = ()) -> list[FileWithWords]:
        """Search every file for purged records, their words, and these texts.

        Words of purged records are known by signatures. Texts are searched at any length, also within longer words.

        Raises:
            StorageError: A file cannot be read.
        """
        ids = {record_id for purge in self.list.purges() for record_id in purge.ids}
        return await asyncio.to_thread(search, self._folder, texts, ids, self.list.get_spans(), short=True)

    async def _older(self, memory_id: str) -> list[str]:
        if await self._service.storage.get(memory_id) is None:
            return []
        return await self._service.storage.older_versions(memory_id)

    def _plan(self, wanted: list[str], older: list[str]) -> PurgePlan:
        survey, named = PurgeSurvey(self._folder), dict.fromkeys([*wanted, *older])
        for record_id in wanted:
            is_known = record_id in survey or self.list.names(record_id)
            if not is_known and not search(self._folder, (), [record_id], PurgedSpans()):  # as of backups alone
                check_transition("purge", None, quoted(record_id), self._folder.agent_id)
        same: dict[str, None] = {}
        while True:
            resting = survey.resting_on([*named, *same])
            ids = (*named, *same, *sorted(resting))
            texts = survey.said_by(ids, resting)
            if not (more := survey.saying(texts, ids)):
                return PurgePlan(ids, texts, tuple(same), tuple(sorted(resting)))
            same |= dict.fromkeys(sorted(more))

    def _begin(self, plan: PurgePlan) -> Purge:
        with folder_lock(self._folder.path, PERSON_SECONDS):
            if not self.list.read().ids:
                note_unnamed(self._folder.journals())
            return self.list.begin(plan.ids, plan.texts, to_text(self._clock()), plan.resting)

    async def _go_on(self, purge: Purge, texts: Collection[str], caller: Caller) -> PurgeReceipt:
        purged_texts = texts or await asyncio.to_thread(
            lambda: PurgeSurvey(self._folder).said_by(purge.ids, purge.resting)
        )
        done = erasure.ErasureResult()
        await self._service.pad.notice(caller)  # edits of a person are stored before it is rendered again
        await asyncio.to_thread(self._erase, purge, purged_texts, done)
        await self._service.writer.compact()  # also drops vectors of texts that no record has any more
        self._service.pad.schedule(caller, is_urgent=True)
        await self._service.settle()
        has_no_vectors = self._service.settings.embedder == "none"
        await asyncio.to_thread(erasure.erase_derived, self._folder, done, vectors=has_no_vectors)
        await asyncio.to_thread(erasure.erase_other_files, self._folder, self._hiding(purge, purged_texts), done)
        await asyncio.to_thread(erasure.note_links, self._folder, done)
        receipt = await asyncio.to_thread(self._receipt, purge, purged_texts, done)
        await asyncio.to_thread(self.list.finish, purge, asdict(receipt), receipt.at)
        await self._service.report(
            "memory:purged", caller, records=len(purge.ids), files=len(receipt.files), found=len(receipt.found)
        )
        return receipt

    def _remove_displaced_pads(self) -> None:
        """Delete displaced scratchpads without edits.

        Words hidden there would look like edits of a person.
        """
        with folder_lock(self._folder.path, PERSON_SECONDS), contextlib.suppress(BusyError):
            PadFile(self._folder.scratchpad, self._clock).look(remove=True)

    def _erase(self, purge: Purge, texts: Collection[str], done: erasure.ErasureResult) -> None:
        self._remove_displaced_pads()
        hiding = self._hiding(purge, texts)
        hide = hiding.hide
        admission = AdmissionFilter(lambda line: self._filter_line(line, purge, hide), hide, purge.ids)
        erasure.erase_backups(self._folder, texts, self.list.get_spans(purge, texts), admission, done)
        if self._folder.blobs.is_dir():
            erasure.erase_texts(self._folder, PurgeSurvey(self._folder).long_texts(), hiding, done)
        # It is rendered from the journals later: the next session would take erased words for an edit of a person.
        erasure.erase_other_files(self._folder, hiding, done, {SCRATCHPAD})
        erasure.erase_journals(self._folder, purge.ids, hide, done)

    def _hiding(self, purge: Purge, texts: Iterable[str]) -> erasure.TextHider:
        return erasure.TextHider(texts, purge.ids, self.list.get_spans(purge, texts))

    def _filter_line(self, line: bytes, purge: Purge, hide: Callable[[str], str]) -> bytes:
        """Return a line of a backup's journal without purged content."""
        line = self.list.filter_line(line)
        try:
            entry = decode_entry(line)
        except MalformedLineError:
            return line
        return b"".join(remove_records([entry], purge.ids, hide).lines)

    def _receipt(self, purge: Purge, texts: Collection[str], done: erasure.ErasureResult) -> PurgeReceipt:
        files = search(self._folder, texts, purge.ids, self.list.get_spans(purge, texts))
        root = self._folder.path.parent
        where = [file.describe(root) for file in files]
        records = {"ids": [*purge.ids], "fingerprints": [*purge.fingerprints]}
        searched = sum(map(is_distinctive, texts)) or sum(map(len, purge.spans.values()))
        return PurgeReceipt(
            purge.id,
            to_text(self._clock()),
            records,
            tuple(sorted(set(done.files))),
            tuple(where),
            (*done.failed, *list_uncleaned([path.name for path in self._folder.journals()])),
            searched,
            sum(not is_distinctive(text) for text in texts),
            (*BEYOND_REACH, _INDEX) if self._folder.index.exists() else BEYOND_REACH,
        )
