"""Checks of journals and copies, and of records of earlier versions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from agent_memory.care.checks.journal_survey import JournalCase, JournalReading
from agent_memory.care.journal_inspection import inspect_journal
from agent_memory.encryption import unlock
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files import names
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import get_disk_size, get_lock_state, get_path_type, list_names
from agent_memory.files.names import COPIES, JOURNAL, Sort, classify_name
from agent_memory.files.wording import counted, few, format_size
from agent_memory.journal import GRACE, read_rejected
from agent_memory.journal.agent_file import (
    JournalState,
    build_missing_error,
    check_present,
    read_header_at,
    read_states,
)
from agent_memory.journal.codec import advise_upgrade, describe_newer
from agent_memory.journal.format import find_ids
from agent_memory.journal.purge_filter import is_returned
from agent_memory.knowledge.entities.merges import count_guesses
from agent_memory.knowledge.inspection import TALKS_FILE, check_pages, check_speakers, check_stages
from agent_memory.knowledge.pages.page_files import TopicFiles
from agent_memory.knowledge.pages.subjects import list_hidden
from agent_memory.knowledge.pipeline.stages import get_title
from agent_memory.language.similarity import find_conflict
from agent_memory.memory.kinds import KINDS
from agent_memory.models import may_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_PUT_BACK: Final = "Put the file itself, or a backup of it, in its place."
_REPAIR: Final = (
    "`agent-memory doctor --repair` copies the journal aside and moves what is no entry to memories.rejected.yaml."
)


def examine_journal(case: JournalCase) -> Iterator[Concern]:
    """Examine the journal."""
    file = case.journal.file
    if file.trouble is not None:
        if _has_key(case):  # else it is reported once for all journals
            yield Concern("journal_unreadable", f"{case.name} cannot be read: {file.trouble.rstrip('.')}.", _PUT_BACK)
        return
    if not file.size:
        yield _report_absent(case)
        return
    if file.reader.header is not None and file.reader.too_new:
        sentence = f"{describe_newer(case.name, file.reader.header)}; here it is read, not written."
        yield Concern("journal_newer", sentence, f"{advise_upgrade()}.", file.size)
    yield from _check_damage(case)
    yield from _check_order(case)
    yield from _check_records(case)
    has_problem = file.reader.problems or file.tail or case.survey.invalid or file.reader.too_new
    is_sound = file.reader.header and not has_problem
    summary = _summarize(case)
    sentence = summary if is_sound else f"What can be read: {summary[0].lower()}{summary[1:]}"
    yield Concern("journal", sentence, size=file.size)


def _has_key(case: JournalCase) -> bool:
    """Return True unless the files are encrypted without a usable key."""
    try:
        unlock(case.folder.path)
    except AgentMemoryError:
        return False
    return True


def _check_damage(case: JournalCase) -> Iterator[Concern]:
    file = case.journal.file
    bad = [problem for problem in file.reader.problems if file.reader.header or problem.line != 1]
    if not file.reader.header:
        problem = "is missing" if bad == file.reader.problems else "is damaged"
        sentence = f"The first line of {case.name}, its header, {problem}; the memories below it are read all the same."
        remedy = "`agent-memory doctor --repair` copies the journal aside and writes a new header."
        yield Concern("journal_header", sentence, remedy)
    if bad:
        named = len(set[bytes]().union(*(find_ids(problem.raw) for problem in bad)))
        about = f", on {named:,} records," if named > len(bad) else ""  # records of one call share a line
        yield Concern(
            "journal_lines",
            f"{counted(len(bad), 'line')} of {case.name}{about} cannot be read; all others are used.",
            _REPAIR,
            sum(len(problem.raw) for problem in bad),
            few([f"line {problem.line}: {problem.reason}" for problem in bad]),
        )
    # A process may have been writing when the journal was read: with a free lock it has finished by now.
    is_held = bool(file.tail) and get_lock_state(case.folder.lock).state == "held"
    if not file.tail or is_held or inspect_journal(case.path).tail != file.tail:
        return
    if file.tail_is_whole:
        sentence = f"The last line of {case.name} is whole but for its line end, which the next writer adds."
        yield Concern("journal_unfinished", sentence, size=len(file.tail))
    else:
        yield Concern(
            "journal_tail",
            f"{case.name} ends in the middle of a line: somebody died while writing it, before it was acknowledged.",
            "The next writer moves the torn piece to memories.rejected.yaml by itself; so does --repair.",
            len(file.tail),
        )


def _check_order(case: JournalCase) -> Iterator[Concern]:
    twice, back = case.journal.file.disorder()
    if back and not twice:
        yield Concern(
            "journal_backwards",
            f"The lines of {case.name} are not in the order in which they were written ({back:,} backwards). What is "
            "read last counts, so memories may be older than they were, and forgotten ones may be back.",
            "--repair copies the journal aside and sorts the lines by their numbers.",
        )
    elif twice:
        yield Concern(
            "journal_order",
            f"The numbering of {case.name} is not straight ({twice:,} twice, {back:,} backwards), as after merging "
            "files by hand: which change of a memory is the later one is told by the order of the lines alone.",
            "Look at memories that both files had. With the vector engine: `agent-memory index rebuild`.",
        )


def _check_records(case: JournalCase) -> Iterator[Concern]:
    survey = case.survey
    if refused := survey.refused:
        yield Concern(
            "journal_records",
            f"{counted(len(refused), 'entry breaks', 'entries break')} the rules of a memory; all others are used.",
            f"{advise_upgrade()}." if case.journal.file.reader.too_new else _REPAIR,
            details=_list_reasons(refused),
        )
    refused_ids = {record_id for record_id, _ in refused}
    if invalid := [(record_id, reason) for record_id, reason in survey.invalid.items() if record_id not in refused_ids]:
        yield Concern(
            "journal_changes",
            f"The last change of {case.describe_count(len(invalid), ' breaks', ' break')} a rule; what was before it "
            "is used.",
            "--repair copies the journal aside and writes what is used; `agent-memory update ID` says something else.",
            details=_list_reasons(invalid),
        )
    if members := [name for circle in survey.circles for name in circle]:
        yield Concern(
            "journal_circle",
            f"{case.describe_count(len(members), ' replaces', ' replace')} one another in a circle; only another "
            "program writes that.",
            "--repair copies the journal aside and lets the latest of each circle replace the others.",
            details=few([f"{name} replaces {survey.get_links()[name]}" for name in members]),
        )
    if wrong := survey.wrong:
        sentence = f"{counted(len(wrong), 'thing')} in {case.name} can be read and should not be so."
        yield Concern("journal_rules", sentence, "`agent-memory update ID` says something else.", details=few(wrong))
    if dangling := survey.dangling:
        yield Concern(
            "journal_references",
            f"{counted(len(dangling), 'reference leads', 'references lead')} to what is not in {case.name}, most often "
            "since it was forgotten.",
            details=few(dangling),
        )


def _list_reasons(reasons: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return few([f"{record_id[:40]}: {reason}" for record_id, reason in reasons])


def _summarize(case: JournalCase) -> str:
    file, survey = case.journal.file, case.survey
    counts = (len(survey.replaced), "superseded"), (survey.expired, "expired or hidden")
    among = [f"{count:,} {word}" for count, word in counts if count]
    journal = f" of {case.name}" if case.path != case.folder.journal else ""
    summary = f"{case.describe_count(survey.count)}{journal}" + (f" ({', '.join(among)})" if among else "")
    if survey.forgotten:
        their = "its" if survey.forgotten == 1 else "their"
        summary += f", {survey.forgotten:,} forgotten ({their} text stays for {GRACE.days} days)"
    summary += f", in {counted(file.reader.lines, 'line')}."
    free = (file.size or 0) - survey.left if survey.left is not None else 0
    return f"{summary[0].upper()}{summary[1:]}" + (f" A compaction would free {format_size(free)}." if free > 0 else "")


def _report_absent(case: JournalCase) -> Concern:
    """Return the concern of a journal that is new or lost."""
    state = "is empty" if case.journal.file.size == 0 else "is missing"
    if case.path != case.folder.journal:
        return Concern("journal_new", f"Nothing was stored yet: {case.name} {state}.")
    if (case.folder.path / f".{case.name}.icloud").exists():
        remedy = "Have the folder downloaded and kept here, or move it out of the cloud folder."
        return Concern("journal_missing", f"{case.name} is in the cloud and not on this machine.", remedy)
    traces = [name for name in (names.INDEX, names.VECTORS, names.AUDIT) if (case.folder.path / name).exists()]
    pad = case.folder.scratchpad
    has_entries = get_path_type(pad) == "file" and pad.stat().st_size > 0 and b"[]" not in pad.read_bytes().splitlines()
    other_journals = _list_copies(case.folder.path)
    sources = [f"{name} beside it (`agent-memory doctor --salvage` reads it)" for name in other_journals]
    if not (traces or has_entries or sources):
        return Concern("journal_new", f"Nothing was stored yet: {case.name} {state}.")
    if has_entries:
        sources.append(
            "scratchpad.yaml, which shows the latest memories (copy it before a session renders it anew; `agent-memory "
            "import` reads it)"
        )
    missing = build_missing_error(case.path, (read_states(case.folder.path) or {}).get(case.name, JournalState("")))
    remainder = f"What may still hold memories: {'; '.join(sources)}." if sources else "Nothing here holds their text."
    return Concern(
        "journal_missing",
        f"{case.name} {state}, though this agent had memories. Vectors and indexes hold none of their text. "
        f"{remainder}",
        f"Close all sessions and put {case.name} back; or {missing.recovery}.",
    )


# -- copies ---------------------------------------------------------------------------------------------------------


def _list_copies(folder: Path) -> dict[str, Sort]:
    """Return other versions of the journal in the folder, by name."""
    sorts = {name: classify_name(name) for name in list_names(folder, "conflict", "copy", "rewritten", "before_repair")}
    return {
        name: sort
        for name, sort in sorts.items()
        if (sort != "before_repair" or name.startswith(f"{JOURNAL}.")) and get_path_type(folder / name) == "file"
    }


def examine_copies(case: JournalCase) -> Iterator[Concern]:
    """Examine other versions of the journal in the folder."""
    folder = case.folder.path
    copies = _list_copies(folder)
    lost = [name for name in list_names(folder, "lost") if get_path_type(folder / name) == "file"]
    yield from (_check_conflict_copy(case, name) for name, sort in copies.items() if sort == "conflict")
    yield from (_check_lost(case, name) for name in lost)
    if strangers := [name for name in list_names(folder, *COPIES, "lost") if name not in {*copies, *lost}]:
        sentence = (
            f"{counted(len(strangers), 'file')} named like ours and not ours, as synchronising programs leave them."
        )
        advice = f"Nothing uses them. {_advise_deletion(strangers)}"
        yield Concern("strangers", sentence, advice, *_measure(folder, strangers))
    if aside := list_names(folder, "broken"):
        sentence = f"{counted(len(aside), 'thing')} that could not be used, moved aside by a repair."
        yield Concern("aside", sentence, _advise_deletion(aside), *_measure(folder, aside))
    if rewritten := [name for name, sort in copies.items() if sort == "rewritten"]:
        number = counted(len(rewritten), "copy", "copies")
        sentence = f"Another program rewrote {case.name}; kept beside it: {number} of what it wrote."
        remedy = "`agent-memory edit ID` is the way to change a memory. Delete the copies when nothing is missing."
        yield Concern("journal_rewritten", sentence, remedy, *_measure(folder, rewritten))
    if older := [name for name, sort in copies.items() if sort in {"copy", "before_repair"}]:
        sentence = f"{counted(len(older), 'older version')} of the journal: made by a repair, or somebody's backup."
        yield Concern("journal_copies", sentence, _advise_deletion(older), *_measure(folder, older))


def _advise_deletion(names: Sequence[str]) -> str:
    return f"Delete {'it' if len(names) == 1 else 'them'} when nothing is missing."


def _check_conflict_copy(case: JournalCase, name: str) -> Concern:
    copy = JournalReading(case.folder.path / name, case.folder.agent_id, case.kinds)
    if copy.file.trouble is not None:
        return Concern("conflict_copies", f"The conflict copy {name!r} cannot be read: {copy.file.trouble}.")
    missing = sum(1 for _ in copy.find_missing(case.journal.file))
    if not missing:
        sentence = f"The conflict copy {name!r} holds no memory that the journal does not know."
        return Concern("conflict_copies_known", sentence, "It may be deleted.", copy.file.size)
    return Concern(
        "conflict_copies",
        f"The conflict copy {name!r} holds {case.describe_count(missing)} that the journal has not: two "
        "machines wrote at once, and a synchronising program kept both files.",
        f"agent-memory doctor --salvage {shlex.quote(name)} --agent {case.folder.agent_id} "
        f"| agent-memory import --trusted - --agent {case.folder.agent_id}",
        copy.file.size,
    )


def _check_lost(case: JournalCase, name: str) -> Concern:
    """Report records that a session saved and the journal does not have."""
    path = case.folder.path / name
    items, _ = read_rejected(path)
    missing = [item for item in items if not case.journal.file.has(str(item.get("id")))]
    if not missing:
        sentence = f"All memories in {name} are in the journal, perhaps in another version."
        return Concern("lost_known", sentence, "It may be deleted.", get_disk_size(path))
    return Concern(
        "lost",
        f"{name} keeps {case.describe_count(len(missing))} that another program removed from {case.name} "
        "while a session knew them.",
        f"agent-memory import --trusted {shlex.quote(str(path))} --agent {case.folder.agent_id}, unless "
        "that was on purpose; then delete the file.",
        get_disk_size(path),
    )


def _measure(folder: Path, names: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the total size of files and the first of their names."""
    return sum(get_disk_size(folder / name) for name in names), few(names)


def examine_tasks(case: JournalCase) -> Iterator[Concern]:
    """Examine the marks of background stages in their journal."""
    if case.path == case.folder.tasks:
        yield from check_stages(case.journal.load().values(), lambda record_id: _find_title(case, record_id))


def _find_title(case: JournalCase, record_id: str) -> str:
    """Return the title of a record, empty if unknown."""
    for kind in (kind for kind in KINDS if record_id.startswith(kind.prefix)):
        reading = JournalReading(case.folder.path / kind.journal, case.folder.agent_id, (kind,))
        if (record := reading.load([record_id]).get(record_id)) is not None:
            return get_title(record)
    return ""


def examine_generation(case: JournalCase) -> Iterator[Concern]:
    """Report a journal that was not last in use, and missing ones."""
    states = read_states(case.folder.path) or {}
    reader, state = case.journal.file.reader, states.get(case.name)
    on_disk = read_header_at(case.path)  # read after the states: a compaction replaces the journal first
    if reader.header is None or on_disk is None or on_disk.generation != reader.header.generation:
        return
    if is_returned(case.path) or (state and not state.follows(on_disk, case.journal.file.last_seq)):
        lines = counted(reader.withheld, "line with purged text is", "lines with purged text are")
        purged = f" {lines} left out." if reader.withheld else ""
        yield Concern(
            "journal_returned",
            f"{case.name} is not the file that was last in use: it was put back, copied, or written by another "
            f"version.{purged}",
            "`agent-memory archive compact` rewrites it. Look for memories that were stored since it was copied.",
            case.journal.file.size,
        )


def examine_presence(case: JournalCase) -> Iterator[Concern]:
    """Report journals besides that of memories that were there and are missing."""
    for name in sorted((read_states(case.folder.path) or {}).keys() - {JOURNAL}):
        try:
            check_present(case.folder.path / name)
        except StorageError as error:
            yield Concern("journal_missing", f"{error.message[0].upper()}{error.message[1:]}.", error.recovery)


def examine_conflicts(case: JournalCase) -> Iterator[Concern]:
    """Count undecided pairs of valid memories that do not conflict."""
    undecided = case.survey.undecided
    pairs = [(newer_id, older_id) for newer_id, older_ids in undecided.items() for older_id in older_ids]
    pairs = [pair for pair in pairs if case.survey.replaced.isdisjoint(pair)]
    memories = case.journal.load({memory_id for pair in pairs for memory_id in pair}) if pairs else {}
    hidden = 0
    for newer, older in ((memories.get(newer_id), memories.get(older_id)) for newer_id, older_id in pairs):
        if newer is not None and older is not None:
            hidden += not may_conflict(newer, older) or find_conflict(newer.content, older.content) is None
    if hidden:
        yield Concern(
            "conflicts_hidden",
            f"{counted(hidden, 'undecided pair is', 'undecided pairs are')} hidden: by the present rule the memories "
            "do not conflict.",
        )


def examine_guesses(case: JournalCase) -> Iterator[Concern]:
    """Count entities and relations that removed rules guessed."""
    entities, relations = count_guesses(case.journal.iter_records())
    if entities or relations:
        numbers = f"{counted(entities, 'entity', 'entities')} and {counted(relations, 'relation')}"
        yield Concern("entities_guessed", f"{numbers} that rules of an earlier version guessed are hidden.")


def examine_topics(case: JournalCase) -> Iterator[Concern]:
    """Count topics that removed rules made of names."""
    hidden = list_hidden(case.journal.load().values(), TopicFiles(case.folder.topics))
    if hidden:
        yield Concern(
            "topics_hidden",
            f"{counted(len(hidden), 'topic of an earlier version is', 'topics of an earlier version are')} hidden: "
            "rules made them of words in items.",
            "Run `agent-memory knowledge topic NAME --declare TEXT` to show one again.",
            details=few(hidden),
        )


def examine_speakers(case: JournalCase) -> Iterator[Concern]:
    """Yield concerns about turns with a guessed speaker."""
    kinds = tuple(kind for kind in KINDS if kind.journal == TALKS_FILE)
    talks = JournalReading(case.folder.path / TALKS_FILE, case.folder.agent_id, kinds).load().values()
    yield from check_speakers(talks, case.journal.iter_records())


def examine_pages(case: JournalCase) -> Iterator[Concern]:
    """Yield concerns about entries among the pages."""
    yield from check_pages(case.folder.topics)
