"""Names of tools that a declaration brings, and checks of declared tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.workspace.declaration.model import OWN_COLUMNS, Declaration, Table, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_TOOLS: Final = ("next_steps", "claim_step", "claim_row", "finish_step", "release_step", "fail_step", "renew")
ROW_TOOLS: Final = ("get_row", "list_rows", "search_rows", "save_row", "update_row", "list_proposals")
DEFAULT_TOOLS: Final = ("next_steps", "claim_step", "finish_step", "fail_step", *ROW_TOOLS[:5])
"""Tools that are offered by default: enough for a step, whatever is declared."""

_LocatedFault = tuple[tuple[str | int, ...], str]
_WRITING: Final = ("save", "update", "log")
_OF_KIND: Final = {
    "rows": ("get", "list", "search", "save", "update"),
    "log": ("list", "search", "log"),
    "singleton": ("get", "update"),
}


def get_row_name(name: str, table: Table) -> str:
    """Return the name of one row: as declared, else the table's singular."""
    if table.one is not None:
        return table.one
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def list_tool_names(name: str, table: Table) -> dict[str, str]:
    """Return the operation of each tool of a table, by name."""
    row_name = get_row_name(name, table)
    operations = [operation for operation in _OF_KIND[table.kind] if operation != "search" or table.search]
    return {
        f"{operation}_{name if operation in ('list', 'search') else row_name}": operation for operation in operations
    }


def find_tool_faults(declaration: Declaration) -> Iterator[_LocatedFault]:
    """Yield place and text of each fault of the tools."""
    taken = dict.fromkeys((*STEP_TOOLS, *ROW_TOOLS), "every workspace")
    for name, table in declaration.tables.items():
        for tool in list_tool_names(name, table):
            if tool in taken:
                reason = f"its tool {tool} would be called as one of {taken[tool]}; say `one:`, what one row is called"
                yield ("tables", name), f"tables.{name}: {reason}"
            taken[tool] = name
    for name, spec in declaration.tools.items():
        here: tuple[str | int, ...] = ("tools", name)
        if name in (*STEP_TOOLS, *ROW_TOOLS):
            yield here, f"tools.{name}: every workspace has a tool of this name"
        if spec.table not in declaration.tables:
            yield (*here, "table"), f"tools.{name}.table: {spec.table!r} is no table"
        else:
            yield from (
                (here, f"tools.{name}: {reason}") for reason in _check_tool(spec, declaration.tables[spec.table])
            )


def _check_tool(tool: ToolSpec, table: Table) -> Iterator[str]:
    read = {*tool.where, *tool.columns, *((tool.filled,) if tool.filled else ())}
    unknown = sorted(read - set(table.columns) - OWN_COLUMNS)
    unknown += sorted({*tool.arguments, *tool.constants} - set(table.written_columns()))
    if unknown:
        yield f"{tool.table} has no column {unknown[0]!r} for this"
    if tool.operation == "search" and not table.search:
        yield f"{tool.table} declares no columns to search"
    if (tool.operation == "log") != (table.kind == "log") and tool.operation in _WRITING:
        yield f"{tool.table} is {'a' if table.kind == 'log' else 'no'} log: its rows are {_describe_writing(table)}"
    yield from _check_row_tool(tool, table)
    arguments = [argument for argument in (tool.key, tool.item, tool.field, tool.fields) if argument]
    arguments += [*tool.where.values(), *tool.arguments.values(), *([tool.value_argument] if tool.field else [])]
    twice = sorted({argument for argument in arguments if arguments.count(argument) > 1})
    if twice:
        yield f"two arguments are called {twice[0]!r}"
    missing = sorted(set(tool.optional) - set(arguments))
    if missing:
        yield f"optional: there is no argument {missing[0]!r}"


def _check_row_tool(tool: ToolSpec, table: Table) -> Iterator[str]:
    one_row = tool.operation in ("get", "update", "ending")
    names_row = tool.key is not None or tool.value is not None
    if one_row and not names_row and table.kind != "singleton":
        yield "it needs `key`, the argument that names the row, or `value`, the row's key"
    if not one_row and names_row:
        yield f"key and value name one row, which {tool.operation} does not take"
    if tool.value is not None and (
        tool.key is not None or table.key is None or table.columns[table.key].type != "text"
    ):
        yield "value is the key of a row where the key is a text and no argument names it"
    if tool.bare and len(tool.columns) != 1:
        yield "a bare answer is that of one column"
    lists = [name for name in tool.columns if name in table.columns and table.columns[name].type == "json"]
    if tool.operation == "ending" and not (
        tool.item and tool.key and len(lists) == len(tool.columns) == 1 and table.key
    ):
        yield "an ending needs `key`, `item` and one column of type json, of a table with a key"
    writes = tool.arguments or tool.constants or tool.field or tool.fields
    if tool.operation in _WRITING and not writes:
        yield "it writes nothing: name arguments, field, fields or constants"
    if tool.operation not in _WRITING and writes:
        yield f"arguments, field, fields and constants are written, and {tool.operation} only reads"
    if tool.operation != "list" and (tool.where or tool.filled):
        yield "where and filled choose the rows of a list"


def _describe_writing(table: Table) -> str:
    return (
        "added with `log` and never changed" if table.kind == "log" else "added with `save` and changed with `update`"
    )
