"""Operations of the tools on rows, and answers of limited length."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import RowNotFoundError, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.workspace.rows.row_writer import SavedRow
    from agent_memory.workspace.toolset.tool import ToolSession

LIST_LIMIT: Final = 200
SEARCH_LIMIT: Final = 20
MAX_CHARS: Final = 40_000
"""Characters of one answer, as of the tools for memories: about 10,000 tokens."""
EXCERPT_CHARS: Final = 500
"""Characters of each text in a list of whole rows."""


def get(session: ToolSession, table: str, key: Any, columns: Sequence[str] = (), begin: int = 0) -> dict[str, Any]:
    """Return a row with `status` `found`, or `not_found`."""
    try:
        row = session.workspace.tables.get(table, key, session.caller(), columns)
    except RowNotFoundError as error:
        return {"status": "not_found", "message": error.message}
    return {"status": "found", **cut_row(row, begin)}


def value(session: ToolSession, table: str, key: Any, column: str, begin: int = 0) -> dict[str, Any]:
    """Return one value of a row with `status` `found`, `empty` or `not_found`."""
    row_answer = get(session, table, key, [column], begin)
    if row_answer["status"] != "found":
        return row_answer
    cell = row_answer["row"][column]
    answer = {"status": "empty" if cell is None else "found", "value": cell}
    return {**answer, "cut": row_answer["cut"][column]} if "cut" in row_answer else answer


def rows(
    session: ToolSession,
    table: str,
    *,
    where: Mapping[str, Any] | None = None,
    filled: str | None = None,
    columns: Sequence[str] = (),
    limit: int = LIST_LIMIT,
    offset: int = 0,
) -> dict[str, Any]:
    """Return `count`, `total`, `rows`, and `next_offset` if there are more."""
    page = session.workspace.tables.many(
        table, session.caller(), where=where, filled=filled, columns=columns, limit=limit, offset=offset
    )
    answer = cut_rows(page.rows, is_whole=not columns)
    after = offset + answer["count"]
    return {"total": page.total, **answer, **({"next_offset": after} if after < page.total else {})}


def search(session: ToolSession, table: str, query: str, limit: int = SEARCH_LIMIT) -> dict[str, Any]:
    """Return `count` and `rows` with words of `query`, the best first."""
    return _cut_matches(session.workspace.tables.search(table, query, session.caller(), limit=limit))


def proposals(session: ToolSession, table: str) -> dict[str, Any]:
    """Return `count` and `rows` of the proposals."""
    return _cut_matches(session.workspace.tables.proposals(table, session.caller()))


def _cut_matches(matches: list[dict[str, Any]]) -> dict[str, Any]:
    answer = cut_rows(matches, is_whole=True)
    left_out = len(matches) - answer["count"]
    return {**answer, "left_out": left_out} if left_out else answer


def save(session: ToolSession, table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add a row; `status` is `saved` or `proposal`."""
    saved = session.workspace.tables.save(table, values, session.caller())
    answer = {"status": "proposal" if saved.proposal else "saved", **_describe_saved(table, saved)}
    if saved.proposal:
        unique = ", ".join(session.workspace.declaration.tables[table].unique_columns())
        answer["message"] = (
            f"There is a row of {table} with this {unique}. This one is kept as a proposal; the row of the earlier "
            "step is shown."
        )
    return answer


def update(
    session: ToolSession, table: str, key: Any, values: Mapping[str, Any], expected: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Change columns of a row; `status` is `updated` or `unchanged`."""
    saved = session.workspace.tables.update(table, key, values, session.caller(), expected=expected)
    return {"status": "updated" if saved.changed else "unchanged", **_describe_saved(table, saved)}


def ending(session: ToolSession, table: str, key: Any, column: str, item: int, characters: int) -> dict[str, Any]:
    """Return the end of the text before item `item` of a list.

    Before the first item that is the last text of the row before. `status` is `found` with `of` and `ending`, `none` if
    nothing comes before, or `not_found`.
    """
    name = session.workspace.declaration.tables[table].key or "id"
    caller = session.caller()
    try:
        if item == 1:
            keys = [row[name] for row in session.workspace.tables.many(table, caller, columns=[name]).rows]
            session.workspace.tables.get(table, key, caller, [name])
            before = [earlier_key for earlier_key in keys if earlier_key < key]
            if not before:
                return {"status": "none", "message": f"Nothing comes before item 1 of {table} {key!r}."}
            key, item = before[-1], 0
        texts = session.workspace.tables.get(table, key, caller, [column])[column] or []
    except RowNotFoundError as error:
        return {"status": "not_found", "message": error.message}
    if not isinstance(texts, list):
        raise ValidationError(f"{table}.{column} of {key!r} is no list of texts.", code="wrong_value")
    place = len(texts) if item == 0 else item - 1
    if not 1 <= place <= len(texts):
        length = f"{column} of {table} {key!r} has {len(texts)} items"
        return {"status": "none", "message": f"{length}; there is none before item {item or 1}."}
    text = texts[place - 1] if isinstance(texts[place - 1], str) else str(texts[place - 1])
    return {"status": "found", "of": {name: key, "item": place}, "ending": _get_end(text, characters)}


def _get_end(text: str, characters: int) -> str:
    """Return the last characters, from the beginning of a word."""
    if len(text) <= characters:
        return text
    end = text[-characters:]
    return end if text[-characters - 1].isspace() else end.partition(" ")[2] or end


def _describe_saved(table: str, saved: SavedRow) -> dict[str, Any]:
    fields: dict[str, Any] = {"table": table, "id": saved.row_id}
    return {**fields, "redacted": list(saved.redacted)} if saved.redacted else fields


def cut_row(row: dict[str, Any], begin: int = 0) -> dict[str, Any]:
    """Return `row` with shortened texts, and `cut` with their next positions.

    Args:
        row: Value of each column. A list or an object that has to be cut becomes JSON text.
        begin: Number of characters to skip in each text.
    """
    texts = {name: text for name, value in row.items() if (text := _get_text(value)) is not None}
    shown, cut = dict(row), {}
    remaining = MAX_CHARS
    for number, name in enumerate(sorted(texts, key=lambda name: len(texts[name]))):
        text = texts[name]
        part = text[begin : begin + remaining // (len(texts) - number)]
        remaining -= len(part)
        if begin or len(part) < len(text):
            shown[name] = part
        if begin + len(part) < len(text):
            cut[name] = {"characters": len(text), "next": begin + len(part)}
    return {"row": shown, **({"cut": cut} if cut else {})}


def cut_rows(rows: Sequence[dict[str, Any]], *, is_whole: bool) -> dict[str, Any]:
    """Return `count` and the `rows` that fit into `MAX_CHARS`.

    There is at least one row.

    Args:
        rows: Rows of the answer.
        is_whole: True if no columns were chosen: long texts are cut to their beginning, and `cut` names them.
    """
    shown: list[dict[str, Any]] = []
    cut: set[str] = set()
    used = 0
    for row in rows:
        short, now_cut = _shorten_row(row) if is_whole else (row, set[str]())
        size = len(json.dumps(short, ensure_ascii=False))
        if shown and used + size > MAX_CHARS:
            break
        if size > MAX_CHARS:
            bounded = cut_row(short)
            short, now_cut = bounded["row"], now_cut | set(bounded.get("cut", ()))
        shown.append(short)
        cut |= now_cut
        used += size
    return {"count": len(shown), "rows": shown, **({"cut": sorted(cut)} if cut else {})}


def _shorten_row(row: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    long = {name: text for name, value in row.items() if len(text := _get_text(value) or "") > EXCERPT_CHARS}
    return {**row, **{name: f"{text[:EXCERPT_CHARS]}…" for name, text in long.items()}}, set(long)


def _get_text(value: Any) -> str | None:
    """Return the characters of a value that may be long."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else None
