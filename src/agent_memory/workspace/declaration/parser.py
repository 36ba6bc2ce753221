"""Parser of YAML declarations, and comparison of two declarations."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

import pydantic
import yaml

from agent_memory.errors import DeclarationError
from agent_memory.files.yaml_loader import BoundedComposer
from agent_memory.workspace.declaration.checks import find_faults
from agent_memory.workspace.declaration.json_schemas import find_new_refused_patterns, find_refused_patterns
from agent_memory.workspace.declaration.model import OWN_COLUMNS, Column, Declaration, Label, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_MAX_BYTES: Final = 1_000_000
_SHOWN: Final = 20
_Place = tuple[str | int, ...]
_LABEL: Final = next(rule.pattern for rule in get_args(Label) if isinstance(rule, pydantic.StringConstraints))


@dataclass(frozen=True, slots=True)
class DeclarationFault:
    """Fault in a declaration; line and column count from 1."""

    line: int
    column: int
    message: str


def read_declaration(path: Path) -> Declaration:
    """Read a declaration from a file.

    Raises:
        DeclarationError: It cannot be read, or is wrong.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DeclarationError(f"{path.name} is longer than {_MAX_BYTES:,} bytes; nothing of it was read.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DeclarationError(f"No file {path}.", code="no_file", recovery="Check the name.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise DeclarationError(f"{path} cannot be read: {reason}.") from error
    return parse_declaration(text, path.name)


def parse_declaration(text: str, name: str = "declaration") -> Declaration:
    """Return the declaration in a YAML text.

    Raises:
        DeclarationError: It is wrong; the message has a line for each fault, `name:line:column: …`.
    """
    try:
        composer = BoundedComposer(text)
        node = composer.get_single_node()
        duplicates = [] if node is None else list(_find_duplicates(node))
        value = None if node is None else composer.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _build_error(name, [DeclarationFault(line, column, str(error.problem))]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _build_error(name, [DeclarationFault(1, 1, str(error))]) from error
    places = {} if node is None else dict(_iter_places(node))
    faults, declaration, broken = duplicates, None, frozenset[str]()
    try:
        declaration = Declaration.model_validate(value)
    except pydantic.ValidationError as error:
        errors = error.errors()
        inner = {item["loc"][:-1] for item in errors} | {item["loc"][:-2] for item in errors}
        # A list that is too short only because its items are wrong is not another fault.
        own_errors = [item for item in errors if not (item["type"] == "too_short" and item["loc"] in inner)]
        faults += [_describe_fault(item, places) for item in own_errors]
        declaration, broken = _validate_rest(value, [item["loc"] for item in errors])
    for place, message in find_faults(declaration) if declaration is not None else ():
        if not any(re.search(pattern, message) for pattern in broken):
            faults.append(DeclarationFault(*_locate(place, places), message))
    if faults or declaration is None:
        raise _build_error(name, faults)
    return declaration


def _validate_rest(value: Any, errors: list[_Place]) -> tuple[Declaration | None, frozenset[str]]:
    """Return a declaration without its wrong parts, and patterns of following faults.

    So faults of shape do not hide the others. None if the parts cannot be left out.
    """
    rest = copy.deepcopy(value)
    broken: set[str] = set()
    for place in errors:
        section, *names = place or ("",)
        if section == "workspace" and isinstance(rest, dict):
            rest["workspace"] = "unnamed"
            continue
        if not names or not isinstance(rest.get(section), dict | list):
            return None, frozenset()
        table = rest[section].get(names[0]) if section == "tables" else None
        if section == "phases":
            broken.add("done: .* is no phase")
            rest["phases"] = []
        elif isinstance(table, dict) and names[1:2] == ["columns"] and names[2:] and isinstance(table["columns"], dict):
            table["columns"][names[2]] = {}  # a text: what needs another type is left out, too
            rest = {key: part for key, part in rest.items() if key not in ("logs", "tools")}
        elif isinstance(table, dict) and names[1:] and names[1] not in Table.model_fields:
            table.pop(names[1], None)
        else:
            rest[section].pop(names[0], None)
            broken.add(rf"\b{re.escape(str(names[0]))}\b")
    try:
        return Declaration.model_validate(rest), frozenset(broken)
    except pydantic.ValidationError:
        return None, frozenset()


def _build_error(name: str, faults: list[DeclarationFault]) -> DeclarationError:
    ordered = sorted(faults, key=lambda fault: (fault.line, fault.column))
    lines = [f"{name}:{fault.line}:{fault.column}: {fault.message}" for fault in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"… and {len(ordered) - _SHOWN} more")
    return DeclarationError("\n".join(lines))


def _describe_fault(error: Any, places: dict[_Place, tuple[int, int]]) -> DeclarationFault:
    """Return a fault that pydantic found, in terms of a declaration."""
    where = tuple(part for part in error["loc"] if part != "[key]")
    kind, context = error["type"], error.get("ctx", {})
    name = ".".join(str(part) for part in where)
    if kind == "extra_forbidden":
        message = f"{name}: nothing reads this key"
    elif kind == "missing":
        message = f"{name}: missing"
    elif kind == "literal_error":
        message = f"{name}: {error['input']!r} is not {context['expected']}"
    elif kind == "string_pattern_mismatch" and context["pattern"] == _LABEL:
        message = f"{name}: a name here is made of up to 100 letters, digits and _.@-"
    elif kind == "string_pattern_mismatch":
        message = f"{name}: a name is made of lower-case letters, digits and _, and begins with a letter"
    elif kind == "string_type" and "[key]" in error["loc"]:
        where = where[:-1]
        message = f"{'.'.join(map(str, where))}: YAML reads a name here as no text (no, on, 1 and the like); quote it"
    elif kind == "too_short":
        message = f"{name}: at least one is needed"
    elif kind == "model_type" and not where:
        message = "a declaration is a mapping with `workspace` and `tables`"
    else:
        text = error["msg"].removeprefix("Value error, ")
        message = f"{name}: {text[:1].lower()}{text[1:]}" if name else text
    return DeclarationFault(*_locate(where, places), message)


def _locate(place: _Place, places: dict[_Place, tuple[int, int]]) -> tuple[int, int]:
    """Return line and column of the closest written place."""
    while place not in places and place:
        place = place[:-1]
    return places.get(place, (1, 1))


def _iter_places(node: yaml.Node, path: _Place = ()) -> Iterator[tuple[_Place, tuple[int, int]]]:
    yield path, (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            yield from _iter_places(value, inner)
            yield inner, (key.start_mark.line + 1, key.start_mark.column + 1)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _iter_places(value, (*path, number))


def _find_duplicates(node: yaml.Node) -> Iterator[DeclarationFault]:
    """Yield duplicate keys; YAML would silently keep the last."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield DeclarationFault(
                    key.start_mark.line + 1, key.start_mark.column + 1, f"{key.value!r} stands here twice"
                )
            seen.add(key.value)
            yield from _find_duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _find_duplicates(value)


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """Tables, and columns as (table, column), that a new declaration adds."""

    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()


def find_additions(old: Declaration, new: Declaration) -> AddedColumns:
    """Return the tables and columns that only `new` has.

    Phases, tools, files, indexes, descriptions and write permissions may change freely: no row depends on them.

    Raises:
        DeclarationError: Existing rows might not fit the new one; the message has every reason.
    """
    reasons = list(_find_conflicts(old, new))
    if reasons:
        raise DeclarationError(
            "The declaration was changed in a way that the rows there are might not fit:\n" + "\n".join(reasons),
            code="declaration_changed",
            recovery="Take these changes back, or export the workspace, begin a new one and import what fits.",
        )
    tables = tuple(name for name in new.tables if name not in old.tables)
    columns = tuple(
        (name, column)
        for name, table in new.tables.items()
        if name in old.tables
        for column in table.columns
        if column not in old.tables[name].columns and column not in OWN_COLUMNS  # which every table has already
    )
    return AddedColumns(tables, columns)


def _find_conflicts(old: Declaration, new: Declaration) -> Iterator[str]:
    yield from (f"- {column}: {reason}" for column, reason in find_new_refused_patterns(new, old))
    if old.workspace != new.workspace:
        yield f"- workspace: it was {old.workspace!r} and is {new.workspace!r} now"
    for name, table in old.tables.items():
        if name not in new.tables:
            yield f"- tables.{name} is missing; its rows would be lost"
        else:
            yield from _compare_tables(name, table, new.tables[name])


def _compare_tables(name: str, old: Table, new: Table) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"- tables.{name}.kind: it was {old.kind} and is {new.kind} now"
    if old.key != new.key:
        yield f"- tables.{name}.key: rows were named by {old.key}, and would be by {new.key}"
    for column, was in old.columns.items():
        here = f"tables.{name}.columns.{column}"
        if column not in new.columns and column not in OWN_COLUMNS:
            yield f"- {here} is missing; its values would be lost"
        elif column in new.columns:
            yield from (f"- {here}: {reason}" for reason in _compare_columns(was, new.columns[column]))
    for column, added in new.columns.items():
        if column not in old.columns and added.required and added.default is None:
            yield f"- tables.{name}.columns.{column} is required, and rows that are there have no value: give a default"
        if column not in old.columns and added.unique:
            yield f"- tables.{name}.columns.{column} is unique; a column that is added later cannot be"


def _compare_columns(old: Column, new: Column) -> Iterator[str]:
    if old.type != new.type:
        yield f"it was {old.type} and is {new.type} now"
    if old.references != new.references:
        yield f"it referenced {old.references or 'nothing'}, and would {new.references or 'nothing'}"
    if new.required and not old.required:
        yield "it is required now, and rows may have no value"
    if new.unique != old.unique:
        yield "it is unique now, and rows may have the same value" if new.unique else "it was unique and is not now"
    if new.enum and not (old.enum and set(old.enum) <= set(new.enum)):
        gone = ", ".join(str(value) for value in old.enum if value not in new.enum)
        yield f"its enum no longer has {gone}" if old.enum else "it has an enum now, and rows may have other values"
    if new.json_schema not in (None, old.json_schema) and not any(find_refused_patterns(old.json_schema)):
        yield "its schema is another one, and values may not fit it"
