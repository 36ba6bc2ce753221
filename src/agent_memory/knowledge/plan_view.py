"""View of an import: files, table, problems and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.wording import counted
from agent_memory.models import to_text

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.knowledge.bulk_import import ImportPlan, PlanRow

_NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "memories": ("memory", "memories"),
    "turns": ("turn", "turns"),
    "documents": ("document", "documents"),
    "waiting": ("waiting note", "waiting notes"),
}
_WHY: Final = {
    "ambiguous_dates": "has dates that may be day/month or month/day: add --dates dmy or --dates mdy",
    "damaged_file": "is damaged",
    "damaged_part": "is damaged, or of another form",
    "encrypted": "is encrypted",
    "invalid": "is empty or too long for a memory",
    "no_text": "has no text",
    "no_text_column": "has no column named content or text: add --columns text=NAME",
    "not_followed": "is not in this import",
    "not_text": "is not text in UTF-8",
    "only_secret": "is only a secret, which is never stored",
    "to_convert": "has to be converted to text or Markdown first, for example with pandoc or pdftotext",
    "too_long": "is too large",
    "unknown_column": "has no column with a name of --columns",
    "unknown_speaker": "has no speaker with the name of --me",
    "too_many": "and what follows are more files than one import reads",
}
"""Reasons by error code."""


def view_plan(plan: ImportPlan) -> dict[str, Any]:
    """Return a plan as a document."""
    return {
        "files": [{"file": file.name, "format": form.name} for form, file in plan.files],
        "rows": [_build_row(form, kind, row) for (form, kind), row in plan.rows.items()],
        "similar": plan.similar,
        "left_out": plan.left_out,
        "problems": list_problems(plan),
        "notes": plan.notes,
        "stored": {},
    }


def _build_row(form: str, kind: str, row: PlanRow) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in ("new", "known", "similar", "forgotten")}
    counts["untrusted"] = row.new
    times = {name: to_text(moment) if moment else None for name, moment in list_times(row)}
    return {"format": form, "what": kind, **counts, **times}


def list_times(row: PlanRow) -> list[tuple[str, datetime | None]]:
    """Return first and last time of a row by name."""
    return [("earliest", row.earliest), ("latest", row.latest)]


def list_problems(plan: ImportPlan) -> list[dict[str, str]]:
    """Return the places that cannot be imported, with reasons."""
    return [
        {"where": where, "problem": plan.details.get(where) or _WHY.get(code, code), "code": code}
        for where, code in plan.problems
    ]


def describe_stored(stored: Counter[str]) -> str:
    """Return the counts of stored records as a sentence."""
    counts = list_counts({**stored, "waiting": 0})
    waiting = [f"{stored['waiting']:,} in the inbox"] if stored["waiting"] else []
    return f"Stored {', '.join([*counts, *waiting]) or 'nothing new'}."


def list_counts(counts: Mapping[str, int]) -> list[str]:
    """Return the counts of stored or withdrawn records, each with its noun."""
    return [counted(counts[kind], *nouns) for kind, nouns in _NOUNS.items() if counts.get(kind)]
