"""Examining what lies beside a journal and is another version of it: conflict copies, backups, what was set aside."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from agent_memory.doctor.findings import Finding, few, number
from agent_memory.doctor.reading import not_in, read_journal, rejected_items
from agent_memory.files.entries import kind_of, names_of, size_of
from agent_memory.files.names import COPIES, sort_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agent_memory.doctor.context import Case
    from agent_memory.files.names import Sort


def other_journals(folder: Path) -> dict[str, Sort]:
    """Return the names of other versions of the journal beside it, each with what it means."""
    names = names_of(folder, "conflict", "copy", "rewritten", "before_repair")
    return {
        name: sort_of(name)
        for name in names
        if name.startswith("memories.y") or sort_of(name) != "before_repair"
        if kind_of(folder / name) == "file"
    }


def examine_copies(case: Case) -> Iterator[Finding]:
    """Look at what lies beside the journal and is another version of it."""
    others = other_journals(case.path)
    rewritten = [name for name, sort in others.items() if sort == "rewritten"]
    rest = [name for name, sort in others.items() if sort in {"copy", "before_repair"}]
    for name in (name for name, sort in others.items() if sort == "conflict"):
        yield _conflict(case, name)
    saved = [name for name in names_of(case.path, "lost") if kind_of(case.path / name) == "file"]
    for name in saved:
        yield _saved(case, name)
    yield from _strangers(case, {*others, *saved})
    if rewritten:
        yield Finding(
            "journal_rewritten",
            f"Another program rewrote memories.yaml; kept beside it: {number(len(rewritten), 'copy', 'copies')} of "
            "what it wrote.",
            "`agent-memory edit ID` is the way to change a memory. Delete the copies when nothing is missing.",
            *_these(case.path, rewritten),
        )
    if rest:
        yield Finding(
            "journal_copies",
            f"{number(len(rest), 'older version')} of the journal: made by a repair, or somebody's backup.",
            "Delete them when nothing is missing.",
            *_these(case.path, rest),
        )


def _strangers(case: Case, known: set[str]) -> Iterator[Finding]:
    strangers = [name for name in names_of(case.path, *COPIES, "lost") if name not in known]
    if strangers:
        yield Finding(
            "strangers",
            f"{number(len(strangers), 'file')} named like ours and not ours, as synchronising programs leave them.",
            "Nothing uses them. Delete them when nothing is missing.",
            *_these(case.path, strangers),
        )
    aside = names_of(case.path, "broken")
    if aside:
        yield Finding(
            "aside",
            f"{number(len(aside), 'thing')} that could not be used, moved aside by a repair.",
            "Delete them when nothing is missing.",
            *_these(case.path, aside),
        )


def _conflict(case: Case, name: str) -> Finding:
    copy = read_journal(case.path / name, case.folder.agent_id)
    if copy.trouble is not None:
        return Finding("conflict_copies", f"The conflict copy {name!r} cannot be read: {copy.trouble}.")
    missing = not_in(copy, case.journal)
    if not missing:
        return Finding(
            "conflict_copies_known",
            f"The conflict copy {name!r} holds no memory that the journal does not know.",
            "It may be deleted.",
            copy.size,
        )
    return Finding(
        "conflict_copies",
        f"The conflict copy {name!r} holds {number(len(missing), 'memory', 'memories')} that the journal has not: two "
        "machines wrote at once, and a synchronising program kept both files.",
        f"agent-memory doctor --salvage {shlex.quote(name)} --agent {case.folder.agent_id} "
        f"| agent-memory import --trusted - --agent {case.folder.agent_id}",
        copy.size,
    )


def _saved(case: Case, name: str) -> Finding:
    """Tell whether what a session saved from being lost is back."""
    items, _ = rejected_items(case.path / name)
    missing = [item for item in items if str(item.get("id")) not in case.journal.memories]
    size = size_of(case.path / name)
    if not missing:
        return Finding(
            "lost_known",
            f"All memories in {name} are in the journal, perhaps in another version.",
            "It may be deleted.",
            size,
        )
    return Finding(
        "lost",
        f"{name} keeps {number(len(missing), 'memory', 'memories')} that another program removed from memories.yaml "
        "while a session knew them.",
        f"agent-memory import --trusted {shlex.quote(str(case.path / name))} --agent {case.folder.agent_id}, unless "
        "that was on purpose; then delete the file.",
        size,
    )


def _these(folder: Path, names: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the size of some files together, and the first of their names."""
    return sum(size_of(folder / name) for name in names), few(names)
