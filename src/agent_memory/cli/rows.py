"""Rows as a table, CSV or JSON lines. Values in, lines out; prints nothing.

What a memory says cannot steer a terminal in any of them, nor begin a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len, set_cell_size

from agent_memory.cli.text import minute, one_line, plain, to_json
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = dict[str, Any]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What begins a formula in a spreadsheet (https://owasp.org/www-community/attacks/CSV_Injection)."""
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_GAP: Final = "  "
_ID_COLUMN: Final = len("mem-000000000000")
_NARROWEST: Final = 4
"""Characters that a column has at least, beside those of its name."""


def narrowed(rows: Sequence[Row], fields: Sequence[str] | None) -> list[Row]:
    """Return of each row only `fields`, in their order; all of them if that is None.

    Raises:
        ValidationError: There is no such field.
    """
    if fields is None:
        return list(rows)
    known = dict.fromkeys(name for row in rows for name in row)
    unknown = [name for name in fields if rows and name not in known]
    if unknown:
        raise ValidationError(
            f"There is no field {unknown[0]!r}.",
            code="usage",
            recovery=f"There are: {', '.join(known)}.",
        )
    return [{name: row.get(name) for name in fields} for row in rows]


def lines_of(rows: Sequence[Row], form: str, columns: Sequence[str] | None, width: int | None) -> Iterator[str]:
    """Yield the lines of a table, of CSV or of JSON lines.

    Args:
        rows: Mappings of the same fields.
        form: Which of the three.
        columns: Fields to show, in their order; None for all.
        width: Columns of the terminal that the table must fit; None for whole values.
    """
    if form == "jsonl":
        yield from (to_json(row) for row in rows)
    elif form == "csv":
        names = columns or list(dict.fromkeys(name for row in rows for name in row))
        yield from _csv(rows, names) if names else ()
    else:
        yield from _table(rows, columns or [], width)


def _csv(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    for cells in (columns, *([_harmless(plain(_as_text(row.get(name)))) for name in columns] for row in rows)):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow(cells)
        yield buffer.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else to_json(value)


def _shown(value: Any) -> str:
    """Return a value as a table has it: on one line, a moment to the minute and by the local clock."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return minute(datetime.fromisoformat(value))
    return one_line(_as_text(value))


def _table(rows: Sequence[Row], columns: Sequence[str], width: int | None) -> Iterator[str]:
    """Yield a line for the names and one for each row; where a terminal is narrow the widest columns give way."""
    cells = [[_shown(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns), *cells]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(columns))]
    if width is not None and widths:
        least = [_least(name) for name in columns]
        widths = _fitting(widths, least, width - len(_GAP) * (len(widths) - 1))
    for line in lines:
        shown = []
        for text, room in zip(line, widths, strict=True):
            cut = text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"
            shown.append(set_cell_size(cut, room))
        yield _GAP.join(shown).rstrip()


def _least(name: str) -> int:
    """Return how narrow a column may get: ids stay whole, as nothing can be done with half of one."""
    return _ID_COLUMN if name == "id" else max(len(name), _NARROWEST)


def _fitting(widths: list[int], least: list[int], room: int) -> list[int]:
    """Return widths that fit into `room`, the widest made narrower first; none goes below its least."""
    widths = list(widths)
    while sum(widths) > room:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths
