"""Checks of derived files, long texts, backups and the audit log.

No index and no cache is opened in place: the engine writes into files that it opens, and SQLite creates more.
"""

from __future__ import annotations

import sqlite3
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.backup_reader import list_backups
from agent_memory.embeddings.cache import CacheFacts, HashSet, cache_files, get_hash_prefix, inspect_cache
from agent_memory.encryption import AgentBlobs, get_encryption_state, is_encrypted
from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import (
    describe_path_type,
    get_disk_size,
    get_lock_state,
    get_path_type,
    list_names,
    names_in,
    read_regular,
)
from agent_memory.files.names import BUILD_LOCK, HOLDER_LOCK, UNFINISHED
from agent_memory.files.wording import counted, few
from agent_memory.memory.events import list_audit_files, read_audit_file
from agent_memory.memory.scratchpad_file import parse_entries, read_edits
from agent_memory.settings.installation import advice
from agent_memory.store.change_log import hashes_elsewhere
from agent_memory.store.shards import Shards, ShardState, is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.care.checks.journal_survey import JournalCase

_MOVES: Final = "`agent-memory doctor --repair` moves it aside."
_REBUILT: Final = "The next session builds it anew; `agent-memory index rebuild` does so now."


# -- scratchpad.yaml ------------------------------------------------------------------------------------------------


def examine_scratchpad(case: JournalCase) -> Iterator[Concern]:
    """Examine `scratchpad.yaml`."""
    if not case.journal.file.readable:
        return
    path = case.folder.scratchpad
    if is_encrypted(case.folder.path) and get_path_type(path) == "missing":
        return  # it is shown to the agent, and in no file
    if get_path_type(path, follow=True) == "missing":
        yield Concern("scratchpad_none", "There is no scratchpad.yaml yet; the next session that may write renders it.")
        return
    code, sentence, advice_broken = _compare_pad(case)
    yield Concern(code, sentence, advice_broken, get_disk_size(path))


def _compare_pad(case: JournalCase) -> tuple[str, str, str]:
    """Return code, sentence and advice about a scratchpad file; takes no lock."""
    path = case.folder.scratchpad
    repair = (
        "Correct it, or run --repair: it moves the file aside and renders a new one. A session that may write does so."
    )
    try:
        text = read_regular(path).decode("utf-8", "surrogateescape")
        if read_edits(text):
            edited = "scratchpad.yaml was edited by hand; the next session that may write applies the edits."
            return "scratchpad_edited", edited, ""
    except ValidationError as error:
        return "scratchpad_broken", error.message, repair
    except OSError as error:
        return "scratchpad_broken", f"{path.name} cannot be read: {error}.", repair
    shown = len(parse_entries(text))
    entries = counted(shown, "entry", "entries")
    # A session may have other limits than ours: a full pad is compared with as many entries as it has.
    limits = case.settings.max_scratchpad_entries, max(1, shown)
    if text in set(map(case.render_scratchpad, limits)) or (not shown and not case.survey.count):
        return "scratchpad", f"{entries}, as the journal has them.", ""
    stale = f"scratchpad.yaml, {entries}, differs from the journal; the next session that may write renders it again."
    return "scratchpad_stale", stale, ""


# -- derived -----------------------------------------------------------------------------------------------------


def examine_segments(case: JournalCase) -> Iterator[Concern]:
    """Report the comparisons of segments with the journal."""
    return chain.from_iterable(check.concerns() for check in case.segments)


# -- memories.db -------------------------------------------------------------------------------------------------


def examine_index(case: JournalCase) -> Iterator[Concern]:
    """Examine every index without opening it, which would write."""
    index, shards = case.folder.index, Shards(case.folder)
    path_type, (backend, active) = get_path_type(index), shards.active()
    if path_type not in {"missing", "folder"}:
        problem = f"memories.db is {describe_path_type(path_type)} instead of a folder, so there can be no index."
        yield Concern("index_unusable", f"{problem} Memories are found without it.", _MOVES, get_disk_size(index))
        return
    yield from _check_leftovers(index, active or "")
    if backend != "vector":
        return
    if not is_installed():
        sentence = "This agent was migrated, but the vector engine is not installed here; searches use the files."
        yield Concern("engine_missing", sentence, advice("local", "vector"))
    if active is None:
        yield Concern("index_none", "This agent was migrated, but has no index now.", _REBUILT)
        return
    folder = index / active
    state = shards.state(active) if names_in(folder / "shard") else None
    if state is None:
        problem = "is missing" if get_path_type(folder) == "missing" else "is damaged, half built or of another version"
        sentence = f"The index in use, {active}, {problem}; memories are found without it."
        yield Concern("index_broken", sentence, _REBUILT, get_disk_size(folder))
        return
    if (holder := get_lock_state(folder / HOLDER_LOCK)).state == "held":
        yield Concern("index_in_use", f"The index is held by {holder}; other processes search beside it.")
    yield from _check_position(case, state)
    sentence = f"Shard {active}, of {state.embedder}, complete up to change {state.seq:,}."
    yield Concern("index", sentence, size=get_disk_size(folder))


def _check_position(case: JournalCase, state: ShardState) -> Iterator[Concern]:
    if not case.journal.file.readable:
        return
    if state.seq > case.journal.file.last_seq:
        case.refresh()
    last = case.journal.file.last_seq
    if state.seq > last:
        yield Concern(
            "index_ahead",
            f"The index has seen change {state.seq:,}, but the journal ends with {last:,}: an older copy was put back, "
            "or its end was cut off.",
            f"If that was not on purpose, look for a newer memories.yaml first. --repair drops the index. {_REBUILT}",
        )
    elif missing := case.journal.file.behind(state.seq):
        sentence = f"On disk the index is behind by {counted(missing, 'change')}; searches compare these one by one."
        yield Concern("index_behind", sentence)


def _check_leftovers(index: Path, active: str) -> Iterator[Concern]:
    paths = [index / name for name in names_in(index)]
    unfinished = [path for path in paths if path.name.startswith(UNFINISHED)]
    unused = [path for path in paths if path.name.isalnum() and path.name != active and get_path_type(path) == "folder"]
    size = sum(map(get_disk_size, unfinished))
    if (builder := get_lock_state(index / BUILD_LOCK)).state == "held":
        yield Concern("index_in_use", f"An index is being built by {builder}.", size=size)
    elif unfinished:
        yield Concern(
            "index_half_built",
            f"{counted(len(unfinished), 'build')} of an index did not come to an end; the next build removes what is "
            "left.",
            size=size,
        )
    if unused:
        yield Concern(
            "index_unused",
            f"{counted(len(unused), 'index', 'indexes')} not in use; removed as soon as nobody holds "
            f"{'it' if len(unused) == 1 else 'them'}.",
            size=sum(map(get_disk_size, unused)),
        )


# -- embeddings.sqlite3 ---------------------------------------------------------------------------------------------


def examine_vectors(case: JournalCase) -> Iterator[Concern]:
    """Examine the vector cache: damaged, orphaned and missing vectors."""
    path = case.folder.vectors
    if aside := list_names(case.folder.path, "broken_vectors"):
        sentence = f"{counted(len(aside), 'vector cache')} was damaged and moved aside."
        size = sum(get_disk_size(case.folder.path / name) for name in aside)
        yield Concern("vectors_aside", sentence, "It may be deleted.", size)
    if get_path_type(path, follow=True) == "missing":
        yield Concern("vectors_none", "No vectors are kept yet.")
        return
    size = sum(map(get_disk_size, cache_files(path)))
    try:
        facts = inspect_cache(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[-1].strip()[:120] if str(error) else type(error).__name__
        yield Concern(
            "vectors_broken",
            f"The vector cache embeddings.sqlite3 is damaged ({reason}). It holds no text; what it held is "
            "computed again.",
            "Sessions move it aside and begin anew by themselves; so does --repair.",
            size,
        )
        return
    except OSError as error:
        yield Concern("vectors_unread", f"The vector cache was not looked at: {error.strerror or error}.", size=size)
        return
    counts = [f"{counted(len(keys), 'vector')} of {name}" for name, keys in sorted(facts.hashes.items()) if keys]
    yield Concern("vectors", f"{', '.join(counts) or 'No vectors'}.", size=size)
    if get_encryption_state(case.folder.path) is not None:
        return  # the key is needed to know their texts and lengths
    if facts.damaged:
        yield Concern(
            "vectors_spoilt",
            f"{counted(len(facts.damaged), 'vector is', 'vectors are')} damaged: of a wrong length, or all zeros. "
            "Nothing is found by them.",
            "Sessions compute them again when they meet them; --repair removes them.",
        )
    if case.journal.file.readable:
        yield from _check_orphaned(case, facts)


def _check_orphaned(case: JournalCase, facts: CacheFacts) -> Iterator[Concern]:
    def count_orphaned() -> int:
        needed = collect_hashes(case)
        return sum(not needed.has(prefix) for hashes in facts.hashes.values() for prefix in hashes)

    if count_orphaned():
        case.refresh()
    if orphaned := count_orphaned():
        yield Concern(
            "vectors_orphaned",
            f"{counted(orphaned, 'vector')} of texts that no record has any more. A vector tells something of its "
            "text.",
            "Sessions remove them after a forget; --repair does so now.",
        )


def collect_hashes(case: JournalCase) -> HashSet:
    """Return hashes of all texts that the vector cache must keep."""
    return HashSet(chain(case.survey.pieces, map(get_hash_prefix, hashes_elsewhere(case.folder, case.kinds[0]))))


# -- events.jsonl ---------------------------------------------------------------------------------------------------


def examine_audit(case: JournalCase) -> Iterator[Concern]:
    """Examine the audit log and the file before it."""
    kinds = {path: get_path_type(path) for path in list_audit_files(case.folder.audit)}
    for path, kind in kinds.items():
        if kind not in {"missing", "file"}:
            yield Concern(
                "audit_unusable",
                f"{path.name} is {describe_path_type(kind)}, so changes are not logged. Memories are not affected.",
                _MOVES if kind != "hidden" else "Check its permissions.",
            )
    if files := [path for path, kind in kinds.items() if kind == "file"]:
        changes = sum(1 for path in files for _ in read_audit_file(path))
        yield Concern("audit", f"{counted(changes, 'change')} logged.", size=sum(map(get_disk_size, files)))


def examine_blobs(case: JournalCase) -> Iterator[Concern]:
    """Examine the files of long texts that the records name."""
    blobs = AgentBlobs(case.folder)
    sizes, named = blobs.names(), case.survey.blobs
    present = {name for name in named if blobs.get_file_name(name) in sizes}
    missing = [record_id for name, record_id in named.items() if name not in present]
    damaged = [record_id for name, record_id in named.items() if name in present and _is_damaged(blobs, name)]
    for code, problem, record_ids in (("missing", "gone", missing), ("damaged", "not what was stored", damaged)):
        if record_ids:
            yield Concern(
                f"blobs_{code}",
                f"{counted(len(record_ids), 'long text')} that {case.name} names: {problem}. The first 8,192 "
                "characters of each are in the journal, and are found.",
                "Bring the files in blobs/ back from a backup, or take the texts in again.",
                details=few(record_ids),
            )
    if named and not (missing or damaged):
        sentence = f"All {counted(len(named), 'long text')} of {case.name} are there."
        yield Concern("blobs", sentence, size=sum(sizes[blobs.get_file_name(name)] for name in named))


def _is_damaged(blobs: AgentBlobs, name: str) -> bool:
    try:
        blobs.read(name)
    except StorageError:
        return True
    return False


MANY: Final = 1_000
"""Number of memories from which a missing backup is reported."""


def examine_backups(case: JournalCase) -> Iterator[Concern]:
    """Examine the backups of an agent without reading them."""
    listed = list_backups(case.folder.path.parent, case.folder.agent_id)
    if not listed and case.survey.count >= MANY:
        sentence = f"No backup of {counted(case.survey.count, 'memory', 'memories')} was made here."
        yield Concern("backups_none", sentence, "`agent-memory backup create` makes one, unless something else does.")
    if bad := [backup for backup in listed if backup.problem]:
        yield Concern(
            "backups_damaged",
            f"{counted(len(bad), 'backup')} of {len(listed):,} cannot be used.",
            "Make another one (`agent-memory backup create`), then remove these.",
            sum(backup.size for backup in bad),
            tuple(backup.path.name for backup in bad[:3]),
        )
    if usable := [backup for backup in listed if not backup.problem]:
        days = max(0, (case.now - usable[0].made_at).days)
        sentence = f"{counted(len(usable), 'backup')}, the newest {counted(days, 'day')} old."
        yield Concern("backups", sentence, size=sum(backup.size for backup in usable))
