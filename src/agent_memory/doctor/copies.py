"""Examining what lies beside a journal and is another version of it: conflict copies, backups, what was set aside."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from agent_memory.doctor.findings import Finding, few, number
from agent_memory.doctor.looking import kind_of, names_in, size_of
from agent_memory.doctor.reading import not_in, read_journal, rejected_items
from agent_memory.files.strays import conflict_copies, saved_from_loss

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agent_memory.doctor.context import Case

ASIDE: Final = re.compile(r"(?!scratchpad\.|embeddings\.).*\.broken-\d{8}T\d{6}(-\d+)?")
"""What repairs moved aside, but for what has a finding of its own."""
BEFORE_REPAIR: Final = ".before-repair-"
_COPY: Final = re.compile(r"memories\b.*\.ya?ml.*", re.IGNORECASE | re.DOTALL)
_CONFLICT: Final = re.compile(
    # Dropbox and its translations, Syncthing, OneDrive (memories-DESKTOP-4711), iCloud and Finder (memories 2),
    # Google Drive (memories (1)), Nextcloud, Resilio.
    r"conflict|konflikt|conflit|conflito|kopie|copie|copia|sync-|^memories[ -]\d+\.|\(\d+\)|^memories-[^.]+\.ya?ml$",
    re.IGNORECASE,
)


def other_journals(folder: Path) -> list[tuple[str, bool]]:
    """Return the names of other versions of the journal beside it, and whether each looks like a conflict copy."""
    ours = {"memories.yaml", "memories.rejected.yaml", *saved_from_loss(folder)}
    return [
        (name, _CONFLICT.search(name) is not None and BEFORE_REPAIR not in name and ".rewritten-" not in name)
        for name in names_in(folder)
        if name not in ours and not ASIDE.fullmatch(name) and _COPY.fullmatch(name) and kind_of(folder / name) == "file"
    ]


def examine_copies(case: Case) -> Iterator[Finding]:
    """Look at what lies beside the journal and is another version of it."""
    others = other_journals(case.path)
    conflicts = [name for name, conflict in others if conflict]
    rewritten = [name for name, conflict in others if not conflict and ".rewritten-" in name]
    rest = [name for name, conflict in others if not conflict and name not in rewritten]
    for name in conflicts:
        yield _conflict(case, name)
    saved = {name: kind_of(case.path / name) == "file" for name in saved_from_loss(case.path)}
    for name in (name for name, is_file in saved.items() if is_file):
        yield _saved(case, name)
    yield from _strangers(case, {name for name, _ in others} | {name for name, is_file in saved.items() if is_file})
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
    strangers = [name for name in conflict_copies(case.path) if name not in known]
    strangers += [name for name in saved_from_loss(case.path) if name not in known]
    if strangers:
        yield Finding(
            "strangers",
            f"{number(len(strangers), 'file')} named like ours and not ours, as synchronising programs leave them.",
            "Nothing uses them. Delete them when nothing is missing.",
            *_these(case.path, strangers),
        )
    aside = [name for name in names_in(case.path) if ASIDE.fullmatch(name)]
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
