"""Examining the journal and what belongs to it: its lock, and what was set aside from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.doctor.copies import other_journals
from agent_memory.doctor.findings import Finding, few, human, number
from agent_memory.doctor.reading import read_journal, rejected_items
from agent_memory.errors import AgentMemoryError
from agent_memory.files.entries import described, kind_of, size_of
from agent_memory.journal import GRACE
from agent_memory.journal.compaction import compact_entries, first_young
from agent_memory.journal.format import Header
from agent_memory.models import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.doctor.reading import JournalFacts

_NEVER: Final = "~"
"""After every ISO 8601 date."""
_REPAIR: Final = (
    "`agent-memory doctor --repair` copies the journal aside and moves what is no entry to memories.rejected.yaml."
)


def examine_journal(case: Case) -> Iterator[Finding]:
    """Look at `memories.yaml`."""
    facts = case.journal
    if facts.trouble is not None:
        yield Finding(
            "journal_unreadable",
            f"memories.yaml cannot be read: {facts.trouble}.",
            "Put the file itself, or a backup of it, in its place.",
        )
        return
    if not facts.size:
        yield _absent(case)
        return
    if facts.newer:
        yield Finding(
            "journal_newer",
            "memories.yaml was written by a newer version of agent-memory; here it is read, not written.",
            "Upgrade amplifier-bundle-agent-memory.",
            facts.size,
        )
    yield from _damage(case)
    sound = facts.has_header and not facts.bad and not facts.tail and not facts.projection.invalid and not facts.newer
    words = _summary(case)
    if sound:
        yield Finding("journal", words, size=facts.size)
    else:
        yield Finding("journal", f"What can be read: {words[0].lower()}{words[1:]}", size=facts.size)


def _damage(case: Case) -> Iterator[Finding]:
    facts = case.journal
    bad = [problem for problem in facts.bad if facts.has_header or problem.line != 1]
    if not facts.has_header:
        lost = any(problem.line == 1 for problem in facts.bad)
        what = "is damaged" if lost else "is missing"
        yield Finding(
            "journal_header",
            f"The first line of memories.yaml, its header, {what}; the memories below it are read all the same.",
            "`agent-memory doctor --repair` copies the journal aside and writes a new header.",
        )
    if bad:
        yield Finding(
            "journal_lines",
            f"{number(len(bad), 'line')} of memories.yaml cannot be read; all others are used.",
            _REPAIR,
            sum(len(problem.raw) for problem in bad),
            few([f"line {problem.line}: {problem.reason}" for problem in bad]),
        )
    if facts.tail and _stays(case):
        yield _tail(facts)
    yield from _broken_rules(facts)
    yield from _disorder(facts)
    circles = facts.circles()
    if circles:
        yield Finding(
            "journal_circle",
            f"{number(len(circles), 'memory replaces', 'memories replace')} one another in a circle; only another "
            "program writes that.",
            "--repair copies the journal aside and lets the latest of each circle replace the others.",
            details=few([f"{memory_id} replaces {other}" for memory_id, other in circles.items()]),
        )


def _disorder(facts: JournalFacts) -> Iterator[Finding]:
    twice, back = facts.disorder()
    if back and not twice:
        yield Finding(
            "journal_backwards",
            f"The lines of memories.yaml are not in the order in which they were written ({back:,} backwards). What is "
            "read last counts, so memories may be older than they were, and forgotten ones may be back.",
            "--repair copies the journal aside and sorts the lines by their numbers.",
        )
    elif twice:
        yield Finding(
            "journal_order",
            f"The numbering of memories.yaml is not straight ({twice:,} twice, {back:,} backwards), as after merging "
            "files by hand: which change of a memory is the later one is told by the order of the lines alone.",
            "Look at memories that both files had. With the vector engine: `agent-memory reindex`.",
        )


def _stays(case: Case) -> bool:
    """Tell whether the unfinished end of the journal is more than somebody's writing right now."""
    if case.lock().state == "held":
        return False  # whoever was writing when we read has finished by now, if the lock is free
    return read_journal(case.folder.journal, case.folder.agent_id).tail == case.journal.tail


def _broken_rules(facts: JournalFacts) -> Iterator[Finding]:
    refused = list(facts.refused().values())
    if refused:
        yield Finding(
            "journal_records",
            f"{number(len(refused), 'entry breaks', 'entries break')} the rules of a memory; all others are used.",
            _REPAIR,
            details=few([f"{memory_id[:40]}: {reason}" for memory_id, reason in refused]),
        )
    names = {memory_id for memory_id, _ in refused}
    spoilt = {memory_id: reason for memory_id, reason in facts.projection.invalid.items() if memory_id not in names}
    if spoilt:
        yield Finding(
            "journal_changes",
            f"The last change of {number(len(spoilt), 'memory breaks', 'memories breaks')} a rule; what was before it "
            "is used.",
            "--repair copies the journal aside and writes what is used; `agent-memory update ID` says something else.",
            details=few([f"{memory_id[:40]}: {reason}" for memory_id, reason in spoilt.items()]),
        )


def _tail(facts: JournalFacts) -> Finding:
    if facts.tail_is_whole:
        return Finding(
            "journal_unfinished",
            "The last line of memories.yaml is whole but for its line end, which the next writer adds.",
            size=len(facts.tail),
        )
    return Finding(
        "journal_tail",
        "memories.yaml ends in the middle of a line: somebody died while writing it, before it was acknowledged.",
        "The next writer moves the torn piece to memories.rejected.yaml by itself; so does --repair.",
        len(facts.tail),
    )


def _summary(case: Case) -> str:
    facts = case.journal
    superseded = len(facts.projection.replacements.all(case.now))
    expired = sum(memory.is_expired(case.now) for memory in facts.memories.values())
    among = [f"{count:,} {word}" for count, word in ((superseded, "superseded"), (expired, "expired")) if count]
    words = number(len(facts.memories), "memory", "memories") + (f" ({', '.join(among)})" if among else "")
    forgotten = facts.forgotten()
    if forgotten:
        words += f", {forgotten:,} forgotten (their text stays for {GRACE.days} days)"
    words += f", in {number(facts.lines, 'line')}."
    free = compaction_frees(case)
    return f"{words[0].upper()}{words[1:]}" + (f" A compaction would free {human(free)}." if free > 0 else "")


def compaction_frees(case: Case) -> int:
    """Return by how many bytes a compaction now would shrink the journal; 0 if it cannot be told."""
    facts = case.journal
    try:
        young = first_young(facts.entries, case.now, GRACE)
        lines = compact_entries(facts.entries[:young], {MEMORY.name}, _NEVER)
        lines += compact_entries(facts.entries[young:], {MEMORY.name}, "")
    except AgentMemoryError:
        return 0
    kept = len(Header.fresh(facts.watermark[1]).encode()) + sum(map(len, lines))
    return max(0, (facts.size or 0) - kept)


def _absent(case: Case) -> Finding:
    """Tell an agent that never stored anything from one whose journal was lost."""
    traces = [name for name in ("memories.db", "embeddings.sqlite3", "events.jsonl") if (case.path / name).exists()]
    pad = size_of(case.folder.scratchpad) if kind_of(case.folder.scratchpad) == "file" else 0
    others = list(other_journals(case.path))
    what = "is empty" if case.journal.size == 0 else "is missing"
    if (case.path / f".{case.folder.journal.name}.icloud").exists():
        return Finding(
            "journal_missing",
            "memories.yaml is in the cloud and not on this machine.",
            "Have the folder downloaded and kept here, or move it out of the cloud folder.",
        )
    if not (traces or pad or others):
        return Finding("journal_new", f"Nothing was stored yet: memories.yaml {what}.")
    sources = [f"{name} beside it (`agent-memory doctor --salvage` reads it)" for name in others]
    if pad:
        sources.append(
            "scratchpad.yaml, which shows the latest memories (copy it before a session renders it anew; `agent-memory "
            "import` reads it)"
        )
    left = f"What may still hold memories: {'; '.join(sources)}." if sources else "Nothing here holds their text."
    return Finding(
        "journal_missing",
        f"memories.yaml {what}, though this agent had memories. Vectors and indexes hold none of their text. {left}",
        "Close all sessions and put back a backup of memories.yaml, if there is one.",
    )


def examine_rejected(case: Case) -> Iterator[Finding]:
    """Look at `memories.rejected.yaml`."""
    if kind_of(case.rejected) == "missing":
        return
    try:
        items, bad = rejected_items(case.rejected)
    except OSError as error:
        yield Finding(
            "rejected_unusable",
            f"memories.rejected.yaml cannot be used: {error.strerror or error}. Nothing can be set aside.",
            "`agent-memory doctor --repair` moves it aside.",
        )
        return
    reasons = [f"{str(item.get('at'))[:10]}: {item.get('reason')}" for item in items]
    broken = f" {number(bad, 'line')} of it cannot be read." if bad else ""
    yield Finding(
        "rejected",
        f"memories.rejected.yaml keeps {number(len(items), 'piece')} that could not stay in the journal.{broken}",
        "Look whether anything in it is worth storing again; then it may be deleted.",
        size_of(case.rejected),
        few(reasons),
    )


def examine_lock(case: Case) -> Iterator[Finding]:
    """Look at `.lock`."""
    lock = case.lock()
    if lock.state == "held":
        yield Finding("lock_held", f"The lock is held by {lock}, which is writing; others wait for it.")
    elif lock.state == "unusable":
        yield Finding(
            "lock_unusable",
            f"The lock cannot be used: .lock is {described(kind_of(case.lock_path))}. Nothing can be written.",
            "Close all sessions and move it away; `agent-memory doctor --repair` does that with a folder.",
        )
    elif lock.state == "missing" and case.journal.size:
        yield Finding(
            "lock_missing",
            "The lock file was deleted. The next write makes it again; deleted while sessions run, it lets two of them "
            "write at once.",
            "Leave .lock alone, also when it looks stale: a lock ends with its process.",
        )
    else:
        yield Finding("lock", "The lock is free." if lock.state == "free" else "There is none before the first write.")
