"""What tools do with rows, whatever they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.workspace.toolset import answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.workspace.rows import Saved
    from agent_memory.workspace.toolset.session import ToolSession

LIST_LIMIT: Final = 200
SEARCH_LIMIT: Final = 20


def get(session: ToolSession, table: str, key: Any, columns: Sequence[str] = (), begin: int = 0) -> dict[str, Any]:
    """Return a row: `status` is `found` with `row`, or `not_found`."""
    try:
        row = session.workspace.tables.get(table, key, session.caller(), columns)
    except RowNotFoundError as error:
        return {"status": "not_found", "message": error.message}
    return {"status": "found", **answers.of_row(row, begin)}


def value(session: ToolSession, table: str, key: Any, column: str, begin: int = 0) -> dict[str, Any]:
    """Return one value of a row: `status` is `found` with `value`, `empty`, or `not_found`."""
    found = get(session, table, key, [column], begin)
    if found["status"] != "found":
        return found
    one = found["row"][column]
    answer = {"status": "empty" if one is None else "found", "value": one}
    return {**answer, "cut": found["cut"][column]} if "cut" in found else answer


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
    """Return rows: `count`, `total`, `rows`, and `next_offset` where there are more."""
    page = session.workspace.tables.many(
        table, session.caller(), where=where, filled=filled, columns=columns, limit=limit, offset=offset
    )
    answer = answers.of_rows(page.rows, is_whole=not columns)
    after = offset + answer["count"]
    return {"total": page.total, **answer, **({"next_offset": after} if after < page.total else {})}


def search(session: ToolSession, table: str, query: str, limit: int = SEARCH_LIMIT) -> dict[str, Any]:
    """Return rows that have words of `query`, the best first: `count` and `rows`."""
    found = session.workspace.tables.search(table, query, session.caller(), limit=limit)
    answer = answers.of_rows(found, is_whole=True)
    left = len(found) - answer["count"]
    return {**answer, "left_out": left} if left else answer


def proposals(session: ToolSession, table: str) -> dict[str, Any]:
    """Return rows that are kept beside another one with the same unique value: `count` and `rows`."""
    found = session.workspace.tables.proposals(table, session.caller())
    answer = answers.of_rows(found, is_whole=True)
    left = len(found) - answer["count"]
    return {**answer, "left_out": left} if left else answer


def save(session: ToolSession, table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add a row: `status` is `saved`, or `proposal` where another row has its unique value."""
    saved = session.workspace.tables.save(table, values, session.caller())
    answer = {"status": "proposal" if saved.proposal else "saved", **_of(table, saved)}
    if saved.proposal:
        unique = ", ".join(session.workspace.declaration.tables[table].unique_columns())
        answer["message"] = (
            f"There is a row of {table} with this {unique}. This one is kept beside it as a proposal; shown is the one "
            "whose step comes first."
        )
    return answer


def update(
    session: ToolSession, table: str, key: Any, values: Mapping[str, Any], expected: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Change columns of a row: `status` is `updated` or `unchanged`."""
    saved = session.workspace.tables.update(table, key, values, session.caller(), expected=expected)
    return {"status": "updated" if saved.changed else "unchanged", **_of(table, saved)}


def ending(session: ToolSession, table: str, key: Any, column: str, item: int, characters: int) -> dict[str, Any]:
    """Return the end of the text before item `item` of a list: of the row before where it is the first.

    `status` is `found` with `of` and `ending`, `none` where nothing comes before, or `not_found`.
    """
    name = session.workspace.declaration.tables[table].key or "id"
    caller = session.caller()
    try:
        if item == 1:
            keys = [row[name] for row in session.workspace.tables.many(table, caller, columns=[name]).rows]
            session.workspace.tables.get(table, key, caller, [name])
            before = [each for each in keys if each < key]
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
        there = f"{column} of {table} {key!r} has {len(texts)} items"
        return {"status": "none", "message": f"{there}; there is none before item {item or 1}."}
    text = texts[place - 1] if isinstance(texts[place - 1], str) else str(texts[place - 1])
    return {"status": "found", "of": {name: key, "item": place}, "ending": _end(text, characters)}


def _end(text: str, characters: int) -> str:
    """Return the last characters, from the beginning of a word."""
    if len(text) <= characters:
        return text
    end = text[-characters:]
    return end if text[-characters - 1].isspace() else end.partition(" ")[2] or end


def _of(table: str, saved: Saved) -> dict[str, Any]:
    told: dict[str, Any] = {"table": table, "id": saved.row_id}
    return {**told, "redacted": list(saved.redacted)} if saved.redacted else told
