"""A declaration from YAML. Whatever is wrong is said with its line and column, all of it at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

import pydantic
import yaml

from agent_memory.errors import DeclarationError
from agent_memory.files.yaml_loader import BoundedComposer
from agent_memory.workspace.declaration.checking import faults_of
from agent_memory.workspace.declaration.model import Declaration, Label

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_BYTES: Final = 1_000_000
_SHOWN: Final = 20
_Place = tuple[str | int, ...]
_LABEL: Final = next(each.pattern for each in get_args(Label) if isinstance(each, pydantic.StringConstraints))


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a declaration; line and column count from 1."""

    line: int
    column: int
    message: str


def read_declaration(path: Path) -> Declaration:
    """Read a declaration from a file.

    Raises:
        DeclarationError: It cannot be read, or something in it is wrong.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DeclarationError(f"{path.name} is longer than {_MAX_BYTES:,} bytes; nothing of it was read.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DeclarationError(f"There is no file {path}.", code="no_file", recovery="Check the name.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise DeclarationError(f"{path} cannot be read: {reason}.") from error
    return parse_declaration(text, path.name)


def parse_declaration(text: str, name: str = "declaration") -> Declaration:
    """Return the declaration in a YAML text.

    Raises:
        DeclarationError: Something in it is wrong; the message has a line for each fault, `name:line:column: …`.
    """
    try:
        composer = BoundedComposer(text)
        node = composer.get_single_node()
        doubled = [] if node is None else list(_doubled(node))
        value = None if node is None else composer.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _refused(name, [Fault(line, column, str(error.problem))]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(name, [Fault(1, 1, str(error))]) from error
    places = {} if node is None else dict(_places(node))
    if doubled:
        raise _refused(name, doubled)
    try:
        declaration = Declaration.model_validate(value)
    except pydantic.ValidationError as error:
        errors = error.errors()
        inner = {each["loc"][:-1] for each in errors} | {each["loc"][:-2] for each in errors}
        # What is too short only because its items are wrong is no fault of its own.
        told = [each for each in errors if not (each["type"] == "too_short" and each["loc"] in inner)]
        raise _refused(name, [_fault(each, places) for each in told]) from error
    faults = [Fault(*_nearest(place, places), message) for place, message in faults_of(declaration)]
    if faults:
        raise _refused(name, faults)
    return declaration


def _refused(name: str, faults: list[Fault]) -> DeclarationError:
    ordered = sorted(faults, key=lambda fault: (fault.line, fault.column))
    lines = [f"{name}:{each.line}:{each.column}: {each.message}" for each in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"… and {len(ordered) - _SHOWN} more")
    return DeclarationError("\n".join(lines))


def _fault(error: Any, places: dict[_Place, tuple[int, int]]) -> Fault:
    """Return what pydantic found, in words of a declaration."""
    where = tuple(each for each in error["loc"] if each != "[key]")
    kind, context = error["type"], error.get("ctx", {})
    name = ".".join(str(each) for each in where)
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
    elif kind == "model_type" and not where:
        message = "a declaration is a mapping with `workspace` and `tables`"
    else:
        text = error["msg"].removeprefix("Value error, ")
        message = f"{name}: {text[:1].lower()}{text[1:]}" if name else text
    return Fault(*_nearest(where, places), message)


def _nearest(place: _Place, places: dict[_Place, tuple[int, int]]) -> tuple[int, int]:
    """Return line and column of a place, or of the closest one around it that is written."""
    while place not in places and place:
        place = place[:-1]
    return places.get(place, (1, 1))


def _places(node: yaml.Node, path: _Place = ()) -> Iterator[tuple[_Place, tuple[int, int]]]:
    yield path, (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            yield from _places(value, inner)
            yield inner, (key.start_mark.line + 1, key.start_mark.column + 1)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _places(value, (*path, number))


def _doubled(node: yaml.Node) -> Iterator[Fault]:
    """Yield keys that stand twice in a mapping: YAML would keep the last and say nothing."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield Fault(key.start_mark.line + 1, key.start_mark.column + 1, f"{key.value!r} stands here twice")
            seen.add(key.value)
            yield from _doubled(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _doubled(value)
