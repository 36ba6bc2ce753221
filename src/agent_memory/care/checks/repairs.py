"""Repairs by code: derived files are rebuilt, journals changed after a copy.

Only files without memories are deleted: temporary files, unfinished builds, unused indexes and vectors.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.admission import restore_purges
from agent_memory.care.checks.codes import CODES, RepairAction
from agent_memory.care.checks.examination import examine_agent, examine_case, read_noted_agent
from agent_memory.care.checks.file_checks import collect_hashes
from agent_memory.care.checks.journal_survey import JournalCase, list_cases
from agent_memory.embeddings import VectorCache
from agent_memory.embeddings.cache import cache_files, inspect_cache
from agent_memory.embeddings.registry import make_embedder
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import list_leftovers, read_file, remove_leftover, translated
from agent_memory.files.concerns import list_too_open, make_private
from agent_memory.files.entries import get_disk_size, get_path_type, list_names, names_in
from agent_memory.files.exchange import set_aside
from agent_memory.files.layout import folder_of
from agent_memory.files.lock import finish_settled, folder_lock
from agent_memory.files.names import PURGE_KEY, PURGED, SESSIONS, STAMP, get_aside_path
from agent_memory.files.wording import counted, format_size
from agent_memory.journal import Change, Journal, get_rejected_path
from agent_memory.memory.events import list_audit_files
from agent_memory.memory.scratchpad_file import PadFile
from agent_memory.settings import PERSON_SECONDS, ServiceSettings
from agent_memory.store.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.models import Record

_ENDLESS_GRACE: Final = timedelta(days=36_500)
"""Longer than any journal: a repair drops no entry for its age."""
_INDEX_CODES: Final = frozenset({"index_broken", "index_ahead", "index_unused", "index_half_built"})
_NOT_FIXED: Final = "That was not enough: what was found is still to be seen below."
_NEWER_ALLOWS: Final = frozenset({"permissions_open", "leftovers", "lock_unusable"})


def repair_all(
    root: Path, agents: Sequence[str], *, now: datetime, settings: ServiceSettings | None = None
) -> list[RepairAction]:
    """Repair agents and the home; return each action, done or not.

    Args:
        root: Folder of all agents.
        agents: Names of the agents.
        now: The present, UTC.
        settings: Settings of sessions, defaults if omitted.
    """
    settings = settings or ServiceSettings()
    actions = [action for name in agents for action in repair_agent(root, name, now=now, settings=settings)]
    return actions + _repair_sessions(root, now)


def repair_agent(root: Path, agent_id: str, *, now: datetime, settings: ServiceSettings) -> list[RepairAction]:
    """Repair the files of one agent."""
    report = examine_agent(root, agent_id, now=now, settings=settings)
    if "folder_unusable" in {finding.code for finding in report.findings}:
        return []
    folder = folder_of(agent_id, root)
    return [action for case in list_cases(folder, settings, now) for action in _repair_journal(case)]


def _repair_journal(case: JournalCase) -> list[RepairAction]:
    """Repair one journal and its derived files."""
    actions: list[RepairAction] = []
    codes = _find_codes(case)
    for code, remedy in REMEDIES.items():
        if _is_wanted(codes, code):
            action = _attempt(case.folder.agent_id, code, case.folder.path, partial(remedy, case))
            codes = _find_codes(case)  # a repair may cause other findings
            is_left = action.done and CODES[code].is_fixed and _is_wanted(codes, code)
            if action.sentence:
                failed = replace(action, sentence=f"{action.sentence} {_NOT_FIXED}", done=False)
                actions.append(failed if is_left else action)
    return actions


def _find_codes(case: JournalCase) -> set[str]:
    case.read_again()
    return {finding.code for finding in examine_case(case)}


def _is_wanted(codes: set[str], code: str) -> bool:
    if "journal_newer" in codes and code not in _NEWER_ALLOWS:
        return False
    if code in _INDEX_CODES and not codes.isdisjoint({"metadata_broken", "metadata_none"}):
        return False  # the active index is unknown
    return not codes.isdisjoint(_JOURNAL_CODES if code == "journal_lines" else {code})


def _attempt(agent_id: str | None, code: str, place: Path, work: Callable[[], str]) -> RepairAction:
    """Run one repair; an empty sentence means that nothing was left."""
    try:
        with translated(place, "repair"):
            return RepairAction(agent_id, code, work())
    except AgentMemoryError as error:
        return RepairAction(agent_id, code, f"{error.message} {error.recovery}", done=False)


# -- the journal ----------------------------------------------------------------------------------------------------


def _copy_aside(case: JournalCase) -> Path:
    path = case.path
    with folder_lock(case.folder.path):
        return set_aside(path, get_aside_path(path, "before-repair", case.stamp, whole=True), read_file(path))


def _rewrite_journal(case: JournalCase) -> str:
    path, copy = case.path, _copy_aside(case)
    before = case.journal.file
    rejected = get_disk_size(get_rejected_path(case.path))
    journal = Journal(path, case.names, clock=lambda: case.now)
    twice, back = case.journal.file.disorder()
    journal.compact(grace=_ENDLESS_GRACE, keep=case.journal.explain_refusal, by_number=bool(back and not twice))
    case.read_again()
    if lost := case.journal.file.lacks(before):
        message = f"After the repair {case.describe_count(lost, ' is', ' are')} missing in {case.name}."
        raise StorageError(message, recovery=f"Put {copy.name} back in its place, and report this.")
    moved = get_disk_size(get_rejected_path(case.path)) - rejected
    aside = f"; {format_size(moved)} went to {get_rejected_path(case.path).name}" if moved > 0 else ""
    return f"Made {case.name} sound{aside}. As it was before, it is kept as {copy.name}."


def _break_circles(case: JournalCase) -> str:
    members = {name for circle in case.survey.circles for name in circle}
    written = {
        change.id: line.entry.seq
        for lines in case.journal.file.portions(members)
        for line in lines
        for change in line.part.changes
        if change.op != "touch"
    }
    records, freed = case.journal.load(members), []
    for circle in case.survey.circles:
        latest = max(circle, key=lambda record_id: written.get(record_id, 0))
        last = next(record_id for record_id in circle if records[record_id].supersedes == latest)
        freed.append(records[last].model_copy(update={"supersedes": None}))  # it claims to replace the latest
    return _append_records(case, freed)


def _append_records(case: JournalCase, records: Sequence[Record]) -> str:
    """Append whole records, which replace earlier entries about them."""
    if not records:
        return ""
    copy = _copy_aside(case)
    changes = [Change("put", case.journal.get_kind(record).name, record.id, record.to_record()) for record in records]
    with Journal(case.path, case.names, clock=lambda: case.now).locked() as writer:
        writer.append(changes)
    case.read_again()
    return f"Wrote {case.describe_count(len(changes))} anew. The journal before that is kept as {copy.name}."


def _save_scratchpad(case: JournalCase) -> str:
    path = case.folder.scratchpad
    content = path.read_bytes() if get_path_type(path) == "file" else b""
    names = [name for name in list_names(case.folder.path, "before_repair") if name.startswith(path.stem)]
    copies = [case.folder.path / name for name in names]
    if not content or any(get_path_type(copy) == "file" and copy.read_bytes() == content for copy in copies):
        return ""
    copy = set_aside(path, get_aside_path(path, "before-repair", case.stamp), content)
    return f"Kept what scratchpad.yaml shows as {copy.name}; `agent-memory import --trusted` takes it."


# -- what is derived ------------------------------------------------------------------------------------------------


def _close_permissions(case: JournalCase) -> str:
    paths = list_too_open(case.folder)
    for path in paths:
        make_private(path)
    return f"Made {counted(len(paths), 'file or folder', 'files and folders')} private."


def _move_lock(case: JournalCase) -> str:
    if get_path_type(case.folder.lock) != "folder":
        raise StorageError(".lock is a link; somebody may hold it.", recovery="Close all sessions and move it away.")
    return _move_aside(case.folder.lock, case.stamp)


def _remove_leftovers(case: JournalCase) -> str:
    with folder_lock(case.folder.path):
        paths = list_leftovers(case.folder.path)
        for path in paths:
            remove_leftover(path)
    return f"Removed {counted(len(paths), 'temporary file')}."


def _finish_restoring(case: JournalCase) -> str:
    finish_settled(case.folder.path, PERSON_SECONDS)
    return "Finished it: all journals are those of the backup."


def _write_metadata(case: JournalCase) -> str:
    aside = ""
    if get_path_type(case.folder.metadata) != "missing":
        with folder_lock(case.folder.path):  # the lock makes sure that it can be written again
            aside = _move_aside(case.folder.metadata, case.stamp) + " "
    shards = Shards(case.folder)
    names = names_in(case.folder.index)
    states = {name: state for name in names if name.isalnum() and (state := shards.state(name)) is not None}
    fitting = [name for name, state in states.items() if state.seq <= case.journal.file.reader.last_seq]
    if not fitting:
        shards.switch("file", None)
        return f"{aside}Wrote metadata.json: searches are answered from the files."
    newest = max(fitting, key=lambda name: states[name].seq)
    shards.switch("vector", newest, states[newest].embedder)
    return f"{aside}Wrote metadata.json: index {newest} is in use again."


def _drop_index(case: JournalCase) -> str:
    Shards(case.folder).switch("vector", None)
    Shards(case.folder).sweep()
    return "Dropped the index; the next session builds it anew (or `agent-memory index rebuild`, now)."


def _sweep_index(case: JournalCase) -> str:
    before = get_disk_size(case.folder.index)
    Shards(case.folder).sweep()
    freed = max(0, before - get_disk_size(case.folder.index))
    return f"Removed what no process uses of indexes; {format_size(freed)} are free again."


def _move_vectors(case: JournalCase) -> str:
    path = case.folder.vectors
    sentence = _move_aside(path, case.stamp)
    for extra in cache_files(path)[1:]:
        if get_path_type(extra) == "folder":
            _move_aside(extra, case.stamp)
        else:
            extra.unlink(missing_ok=True)
    return f"{sentence} Vectors are computed again when they are wanted."


def _prune_vectors(case: JournalCase) -> str:
    needed = collect_hashes(case)
    with _open_cache(case) as cache:
        removed = cache.prune(needed)
    return f"Removed {counted(removed, 'vector')} of texts that no record has."


def _remove_damaged(case: JournalCase) -> str:
    damaged = inspect_cache(case.folder.vectors).damaged
    with _open_cache(case) as cache:
        cache.forget(damaged)
    return f"Removed {counted(len(damaged), 'damaged vector')}; they are computed again when they are wanted."


@contextmanager
def _open_cache(case: JournalCase) -> Iterator[VectorCache]:
    with closing(VectorCache(case.folder.vectors)) as cache:
        yield cache
    if cache.problem:
        raise StorageError(f"Vectors could not be removed: {cache.problem}.")


def _render_scratchpad(case: JournalCase) -> str:
    pad = _open_pad(case)
    look = pad.look()
    if look.saves or not pad.replace(case.render_scratchpad(case.settings.max_scratchpad_entries), look.content):
        raise StorageError("scratchpad.yaml was just edited.", recovery="The next session takes the edits over.")
    return "Rendered scratchpad.yaml from the journal."


def _replace_scratchpad(case: JournalCase) -> str:
    pad = _open_pad(case)
    if get_path_type(pad.path, follow=True) != "file":
        aside = set_aside(pad.path, get_aside_path(pad.path, "broken", case.stamp))
        return f"Moved scratchpad.yaml to {aside.name}. {_render_scratchpad(case)}"
    save = pad.take_out()
    name = pad.keep_aside(save.content)
    pad.discard(save)
    return f"Moved scratchpad.yaml to {name}. {_render_scratchpad(case)}"


def _open_pad(case: JournalCase) -> PadFile:
    return PadFile(case.folder.scratchpad, lambda: case.now)


def _move_audit(case: JournalCase) -> str:
    paths = list_audit_files(case.folder.audit)
    return " ".join(
        _move_aside(path, case.stamp) for path in paths if get_path_type(path) in {"folder", "link", "other"}
    )


def _rebuild_segments(case: JournalCase) -> str:
    from agent_memory.store.segment_builder import seal_up
    from agent_memory.store.segment_opener import remove_segments

    embedder = make_embedder(case.settings)
    identity = None
    if embedder is not None and getattr(embedder, "is_known", True):
        identity = embedder.identity
    for kind in case.kinds:
        remove_segments(case.folder, kind.name)
        seal_up(case.folder, kind, identity, least=1)
    return "Made the segments anew."


_JOURNAL_CODES: Final = frozenset(
    {"journal_header", "journal_lines", "journal_tail", "journal_records", "journal_backwards"}
)
REMEDIES: Final[dict[str, Callable[[JournalCase], str]]] = {
    "permissions_open": _close_permissions,
    "lock_unusable": _move_lock,
    "rejected_unusable": lambda case: _move_aside(
        get_rejected_path(case.path), case.stamp, f"{case.path.stem}.rejected"
    ),
    "purges_unusable": lambda case: f"Took {PURGED} and {PURGE_KEY} from the backup {restore_purges(case.folder)}.",
    "journal_lines": _rewrite_journal,
    "journal_changes": lambda case: _append_records(case, list(case.journal.load(case.survey.invalid).values())),
    "journal_circle": _break_circles,
    "journal_missing": _save_scratchpad,
    "restore_unfinished": _finish_restoring,
    "leftovers": _remove_leftovers,
    "segments_broken": _rebuild_segments,
    "segments_untrue": _rebuild_segments,
    "index_unusable": lambda case: _move_aside(case.folder.index, case.stamp),
    "metadata_broken": _write_metadata,
    "metadata_none": _write_metadata,
    "index_broken": _drop_index,
    "index_ahead": _drop_index,
    "index_unused": _sweep_index,
    "index_half_built": _sweep_index,
    "vectors_broken": _move_vectors,
    "vectors_spoilt": _remove_damaged,
    "vectors_orphaned": _prune_vectors,
    "scratchpad_broken": _replace_scratchpad,
    "scratchpad_stale": _render_scratchpad,
    "scratchpad_none": _render_scratchpad,
    "audit_unusable": _move_audit,
}


def _repair_sessions(root: Path, now: datetime) -> list[RepairAction]:
    folder = root / SESSIONS
    notes = [folder / name for name in names_in(folder) if name.endswith(".json")]
    broken = [note for note in notes if read_noted_agent(note) is None]

    def move() -> str:
        for path in broken:
            _move_aside(path, f"{now:{STAMP}}")
        return f"Moved {counted(len(broken), 'session note')} aside."

    return [_attempt(None, "session_broken", folder, move)] if broken else []


def _move_aside(path: Path, stamp: str, stem: str | None = None) -> str:
    aside = set_aside(path, get_aside_path(path.with_name(stem or path.name), "broken", stamp, whole=True))
    return f"Moved {path.name} to {aside.name}."
