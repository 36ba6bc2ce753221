"""Edits of JSON texts that keep comments, order and indentation.

Comments and trailing commas are accepted: editors and hosts write them. An edit copies all other bytes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TOKEN: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_FIRST_INDENT: Final = re.compile(r'\s*\{\s*\n([ \t]+)"')
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """Key and positions of a member; items of arrays have none."""

    key: str
    start: int
    value_start: int
    end: int


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; {} if it is empty.

    Raises:
        ValueError: It is not JSON.
    """
    return json.loads(_blank_commas(_blank_comments(text))) if text.strip() else {}


def set_member(text: str, keys: Sequence[str], name: str, value: object) -> str:
    """Return a text with a new value of a member.

    Args:
        text: JSON text of an object; empty for none.
        keys: Keys of the objects around the member, outermost first; missing ones are added.
        name: Key of the member.
        value: New value of the member.

    Raises:
        ValueError: The text is not JSON.
    """
    text = text if text.strip() else "{}\n"
    plain, start, depth = _blank_comments(text), _skip_spaces(_blank_comments(text), 0), 0
    path = [*keys, name]
    while (span := _find_member(plain, start, path[depth])) is not None and depth < len(path) - 1:
        start, depth = span.value_start, depth + 1
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    unit = match[1] if (match := _FIRST_INDENT.match(plain)) else "  "
    indent = unit * (depth + 1)
    shown = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")
    if span is not None:
        return text[: span.value_start] + shown + text[span.end :]
    return _append_member(text, plain, start, f"{indent}{json.dumps(path[depth])}: {shown}")


def remove_member(text: str, keys: Sequence[str], name: str) -> str:
    """Return a text without a member, if it has one.

    Args:
        text: JSON text of an object.
        keys: Keys of the objects around the member, outermost first.
        name: Key of the member.

    Raises:
        ValueError: The text is not JSON.
    """
    text = text if text.strip() else "{}"
    plain, start = _blank_comments(text), _skip_spaces(_blank_comments(text), 0)
    for key in keys:
        if (around := _find_member(plain, start, key)) is None:
            return text
        start = around.value_start
    span = _find_member(plain, start, name)
    return text if span is None else _remove_span(text, plain, start, span)


def append_item(text: str, keys: Sequence[str], item: object) -> str:
    """Return a text with a new last item of an array.

    Args:
        text: JSON text of an object; empty for none.
        keys: Keys of the array, outermost first; missing ones are added.
        item: JSON value to add at the end.

    Raises:
        ValueError: The text is not JSON.
    """
    array = parse_json(text)
    for key in keys:
        array = array.get(key, {})
    if not array:
        return set_member(text, keys[:-1], keys[-1], [item])
    plain = _blank_comments(text)
    start = _find_start(plain, keys)
    unit = match[1] if (match := _FIRST_INDENT.match(plain)) else "  "
    indent = unit * (len(keys) + 1)
    shown = json.dumps(item, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")
    return _append_member(text, plain, start, f"{indent}{shown}")


def remove_items(text: str, keys: Sequence[str], is_removed: Callable[[Any], bool]) -> str:
    """Return a text without some items of an array.

    Args:
        text: JSON text of an object.
        keys: Keys of the array, outermost first.
        is_removed: Returns True for an item to remove.

    Raises:
        ValueError: The text is not JSON.
    """
    while True:
        plain = _blank_comments(text)
        start = _find_start(plain, keys)
        spans = _iter_members(plain, start)
        span = next((span for span in spans if is_removed(parse_json(text[span.value_start : span.end]))), None)
        if span is None:
            return text
        text = _remove_span(text, plain, start, span)


def _find_start(plain: str, keys: Sequence[str]) -> int:
    """Return the position of the value with these keys."""
    start = _skip_spaces(plain, 0)
    for key in keys:
        if (span := _find_member(plain, start, key)) is None:
            raise ValueError(f"{key} is missing")
        start = span.value_start
    return start


def _remove_span(text: str, plain: str, start: int, span: MemberSpan) -> str:
    """Return a text without one member of the value at `start`."""
    line = text.rfind("\n", 0, span.start)
    begin = line if line > start and not text[line : span.start].strip() else span.start
    end = _skip_spaces(plain, span.end)
    if plain[end] == ",":
        return text[:begin] + text[end + 1 :]
    end = end if not text[span.end : end].strip() else span.end
    previous = len(plain[: span.start].rstrip()) - 1
    if plain[previous] != ",":
        return text[:begin] + text[end:]
    return text[:previous] + text[previous + 1 : begin] + text[span.end :]


def _append_member(text: str, plain: str, start: int, line: str) -> str:
    """Return a text with a new last member or item."""
    last = start + 1
    for member in _iter_members(plain, start):
        last = member.end
    next_token = _skip_spaces(plain, last)
    has_comma = plain[next_token] == ","
    after = next_token + 1 if has_comma else last
    line_end = text.find("\n", after)
    if line_end != -1 and not plain[after:line_end].strip():
        after = line_end  # a comment on the line of the last member stays there
    closing = "" if plain[after:].lstrip(" \t").startswith("\n") else "\n" + line[: _count_indent(text, start)]
    comma = "" if last == start + 1 or has_comma else ","
    return f"{text[:last]}{comma}{text[last:after]}\n{line}{',' if has_comma else ''}{closing}{text[after:]}"


def _count_indent(text: str, position: int) -> int:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return len(line) - len(line.lstrip())


def _find_member(plain: str, start: int, key: str) -> MemberSpan | None:
    """Return the last member with a key, as parsers do."""
    return {member.key: member for member in _iter_members(plain, start)}.get(key)


def _iter_members(plain: str, start: int) -> Iterator[MemberSpan]:
    """Yield the members of the object or array that begins at `start`."""
    text = _blank_commas(plain)
    position = _skip_spaces(text, start + 1, ",")
    while text[position] not in "]}":
        key, value_start = "", position
        if text[start] == "{":
            key, end = _DECODER.raw_decode(text, position)
            value_start = _skip_spaces(text, _skip_spaces(text, end) + 1)
        _, value_end = _DECODER.raw_decode(text, value_start)
        yield MemberSpan(key, position, value_start, value_end)
        position = _skip_spaces(text, value_end, ",")


def _skip_spaces(text: str, position: int, more: str = "") -> int:
    while text[position] in f" \t\r\n{more}":
        position += 1
    return position


def _blank_comments(text: str) -> str:
    """Return a text with spaces in place of comments."""
    return _TOKEN.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)


def _blank_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: match[1] or " ", text)
