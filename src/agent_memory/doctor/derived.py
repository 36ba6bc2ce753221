"""Examining what is derived from the journal and made by hand or by sessions: scratchpad, metadata, log of changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_memory.doctor.findings import Finding, number
from agent_memory.errors import ValidationError
from agent_memory.files.entries import described, kind_of, names_of, read_regular, size_of
from agent_memory.files.names import OLDER_AUDIT, moment_of
from agent_memory.scratchpad import Selection
from agent_memory.scratchpad.file import read_edits, render_file
from agent_memory.scratchpad.saves import KEPT
from agent_memory.yaml_reading import load_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.doctor.context import Case


def examine_aside(case: Case) -> Iterator[Finding]:
    """Look at the copies of `scratchpad.yaml` that were set aside; costs a look at the folder."""
    aside = names_of(case.path, "broken_pad")
    recent = [name for name in aside if (moment := moment_of(name)) and case.now - moment < KEPT]
    if recent:
        yield Finding(
            "scratchpad_kept",
            f"An edit of scratchpad.yaml could not be taken over; it is kept as {recent[-1]}.",
            "Look whether anything in it is worth storing; then delete it.",
            sum(size_of(case.path / name) for name in recent),
            tuple(recent[-3:]),
        )
    if older := [name for name in aside if name not in recent]:
        yield Finding(
            "scratchpad_aside",
            f"{number(len(older), 'scratchpad')} kept aside, because something a person wrote there was refused.",
            "Look whether anything in them is worth storing; then delete them.",
            sum(size_of(case.path / name) for name in older),
            tuple(older[:3]),
        )


def examine_scratchpad(case: Case) -> Iterator[Finding]:
    """Look at `scratchpad.yaml`."""
    if not case.journal.readable:
        return
    kind = kind_of(case.folder.scratchpad, follow=True)
    if kind == "missing":
        yield Finding("scratchpad_none", "There is no scratchpad.yaml yet; the next session renders it.")
        return
    try:
        text = read_regular(case.folder.scratchpad).decode("utf-8", "surrogateescape")
        edits = read_edits(text)
        yield _edited(case) if edits else _compared(case, text)
    except (OSError, ValidationError) as error:
        reason = error.message if isinstance(error, ValidationError) else f"scratchpad.yaml cannot be read: {error}."
        yield Finding(
            "scratchpad_broken",
            reason,
            "Mend it, or let the next session (or --repair) move it aside and render it anew from the journal.",
            size_of(case.folder.scratchpad),
        )


def rendered(case: Case, entries: int) -> str:
    """Return scratchpad.yaml as the journal has it, with so many entries at most."""
    valid = case.journal.projection.valid(case.now)
    threshold = case.settings.promotion_access_threshold
    return render_file(Selection(entries, threshold).choose(valid), case.folder.agent_id)


def _edited(case: Case) -> Finding:
    return Finding(
        "scratchpad_edited",
        "scratchpad.yaml was edited by hand; the next session of the agent takes the edits over.",
        size=size_of(case.folder.scratchpad),
    )


def _compared(case: Case, text: str) -> Finding:
    shown = load_yaml(text) or []
    full = case.settings.max_scratchpad_entries
    # A session may have other limits than ours: a full pad is compared with as many entries as it has.
    current = text in {rendered(case, full), rendered(case, max(1, len(shown)))} or (
        not shown and not case.journal.memories
    )
    size = size_of(case.folder.scratchpad)
    if current:
        return Finding("scratchpad", f"{number(len(shown), 'entry', 'entries')}, as the journal has them.", size=size)
    return Finding(
        "scratchpad_stale",
        f"scratchpad.yaml, {number(len(shown), 'entry', 'entries')}, is not what the journal says now; the next "
        "session renders it anew.",
        size=size,
    )


# -- metadata.json --------------------------------------------------------------------------------------------------


def examine_metadata(case: Case) -> Iterator[Finding]:
    """Look at `metadata.json`, which says what searches use."""
    note = metadata_of(case)
    if note is None and kind_of(case.folder.metadata) == "missing":
        if case.journal.size:
            yield Finding("metadata_none", "There is no metadata.json; searches are answered from the files.")
        return
    if note is None:
        yield Finding(
            "metadata_broken",
            "metadata.json cannot be read, so searches are answered from the files even if there is an index.",
            "`agent-memory doctor --repair` writes it anew from what lies there.",
            size_of(case.folder.metadata),
        )
        return
    backend = note.get("backend")
    words = "the vector engine and the files" if backend == "vector" else "the files"
    embedder = f"; vectors of {note['embedder']}" if isinstance(note.get("embedder"), str) else ""
    yield Finding("metadata", f"Searches are answered from {words}{embedder}.", size=size_of(case.folder.metadata))


def metadata_of(case: Case) -> dict[str, Any] | None:
    """Return the note, None if there is none that can be read."""
    try:
        note = json.loads(read_regular(case.folder.metadata))
    except (OSError, ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) and note.get("backend") in {"file", "vector", None} else None


# -- events.jsonl ---------------------------------------------------------------------------------------------------


def examine_audit(case: Case) -> Iterator[Finding]:
    """Look at `events.jsonl` and the file before it."""
    paths = [case.folder.audit, case.folder.audit.with_name(OLDER_AUDIT)]
    kinds = {path: kind_of(path) for path in paths}
    for path, kind in kinds.items():
        if kind not in {"missing", "file"}:
            yield Finding(
                "audit_unusable",
                f"{path.name} is {described(kind)}, so changes are not logged. Memories are not affected.",
                "`agent-memory doctor --repair` moves it aside." if kind != "hidden" else "Check its permissions.",
            )
    files = [path for path, kind in kinds.items() if kind == "file"]
    good, bad = _count_events(files)
    if bad:
        yield Finding(
            "audit_lines",
            f"{number(bad, 'line')} of the log of changes cannot be read; nothing depends on them.",
        )
    if files:
        yield Finding("audit", f"{number(good, 'change')} logged.", size=sum(size_of(path) for path in files))


def _count_events(paths: list[Path]) -> tuple[int, int]:
    good = bad = 0
    for path in paths:
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError:
            continue
        for line in lines:
            if not line.strip():
                continue
            try:
                good += isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                bad += 1
    return good, bad
