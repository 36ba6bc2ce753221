"""What would fail later, when rows are there, is refused when a declaration is read; what is left works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import DeclarationError
from agent_memory.workspace import Workspace, parse_declaration
from tests.rows import check_rows
from tests.unit.workspace.conftest import BOOK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

PHASE = "phases: [{name: p, agents: [w]}]"


def declared(column: str, more: str = "") -> str:
    return f"workspace: w\ntables:\n  a:\n    columns: {{b: {column}, c: text}}\n    {more}\n"


def logged(columns: str, log: str) -> str:
    return f"workspace: w\ntables:\n  r: {{kind: log, columns: {columns}}}\nlogs: {{{log}: r}}\n{PHASE}\n"


def schema(text: str) -> str:
    return declared(f"{{type: json, schema: {text}}}")


@check_rows(
    ("text", "said"),
    [
        ("workspace: pg_x\ntables: {a: {columns: {b: text}}}", "x:1:1: workspace: 'pg_x' is a name that PostgreSQL"),
        ("workspace: w\ntables: {sqlite_a: {columns: {b: text}}}", "names that begin with sqlite_"),
        ("workspace: w\ntables: {a: {columns: {ctid: text}}}", "PostgreSQL keeps this name"),
        ("workspace: w\ntables: {a: {columns: {rank: text}, search: [rank]}}", "searches no column called rank"),
        (declared("text", "search: [b, b]"), "search: a column stands here twice"),
        (declared("text", "index: [b, b]"), "index: a column stands here twice"),
        (declared("{type: text, references: a}", "search: [b]"), "it has no words of its own"),
        *[(declared(each, "key: b"), "a text or an integer of their own") for each in ("real", "boolean", "json")],
        (declared("{type: text, references: a}", "key: b"), "a text or an integer of their own"),
        ("workspace: w\ntables: {a: {key: created_at, columns: {created_at: timestamp}}}", "of their own"),
        (declared("{type: json, unique: true}"), "only texts, numbers and references can be unique"),
        (declared("{type: real, default: .nan}"), "b.default: nan is too large"),
        (declared("{type: integer, default: 9223372036854775808}"), "is too large"),
        (declared('{type: text, default: "a\\0b"}'), "NUL"),
        (declared(f"{{type: text, unique: true, default: {'x' * 501}}}"), "may have 500 characters; this has 501"),
        (declared("{type: timestamp, default: tomorrow}"), "'tomorrow' is no moment"),
        (declared('{type: timestamp, default: "0001-01-01T00:00:00+20:00"}'), "is no moment"),
        (declared("{type: file, default: x.md}"), "a file has none"),
        (declared("{type: text, references: a, default: x}"), "a reference has none"),
        (declared("{type: json, default: {1: a, b: c}}"), "it is not JSON"),
        (declared("{type: json, default: [2026-01-01]}"), "it is not JSON"),
        (declared("{type: json, schema: {type: array}, default: {a: 1}}"), "it does not fit the schema"),
        (schema("{$ref: '#/nope'}"), "$ref names nothing in it: /nope"),
        (schema("{$ref: '#'}"), "$ref leads back to itself"),
        (schema("{$dynamicRef: 'http://x/y'}"), "nothing is fetched"),
        (schema("{$id: 'http://x/y'}"), "$id is not read"),
        (schema("{const: .nan}"), "a value that JSON has not"),
        (logged("{severity: {type: text, required: true}}", "retries"), "has no value for this"),
        (logged("{failure_type: {type: text, enum: [quality]}}", "retries"), "lacks transient, validation"),
        (logged("{attempt_number: text}", "retries"), "must be integer"),
        (logged("{failures: text}", "validations"), "must be json"),
        (logged("{failures: {type: json, schema: {type: object}}}", "validations"), "a list of texts"),
        *[
            (declared("text") + f"phases: [{{name: p, agents: [w], snapshot: {name}}}]\n", "no dot at the beginning")
            for name in (".x", "a@b", "é" * 41, '"e\\u0301"')
        ],
        (declared("text") + "files: {f: a**b}\n", "files.f: ** stands for folders"),
        (declared("text") + 'files: {f: "a\\0b"}\n', "files.f"),
    ],
)
def test_what_would_fail_later_is_refused_at_once(text: str, said: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(text, "x")
    assert said in caught.value.message


def test_a_schema_may_refer_to_its_own_parts() -> None:
    tree = (
        "{$ref: '#/$defs/n', $defs: {n: {type: object, properties: {in: {type: array, items: {$ref: '#/$defs/n'}}}}}}"
    )
    assert parse_declaration(schema(tree)).workspace == "w"


def test_names_that_look_alike_with_their_table_or_are_long_are_names(url: str | None, tmp_path: Path) -> None:
    long, longer = "t" * 60, "t" * 59 + "u"
    text = f"""
workspace: w
tables:
  a: {{columns: {{b_c: {{type: text, unique: true}}, d: text, id_1: text}}, index: [d], search: [d]}}
  a_b: {{columns: {{c: {{type: text, unique: true}}}}}}
  idx_a_d: {{columns: {{c: text}}}}
  {long}: {{columns: {{{long}: {{type: text, unique: true}}, {longer}: {{type: text, unique: true}}}}}}
"""
    (tmp_path / "w.yaml").write_text(text)
    workspace = Workspace.create(tmp_path / "w", tmp_path / "w.yaml", url=url)
    workspace.tables.save("a", {"b_c": "x", "id_1": "1"})
    workspace.tables.update("a", 1, {"id_1": "2"})
    assert workspace.tables.get("a", 1)["id_1"] == "2"
    assert not workspace.tables.save(long, {long: "x", longer: "y"}).proposal
    assert workspace.tables.save(long, {longer: "y"}).proposal
    workspace.close()


def test_a_table_may_show_its_times_later_or_no_longer(url: str | None, book: Workspace, clock: FrozenClock) -> None:
    folder = book.folder
    book.tables.save("tactics", {"name": "a"})
    book.close()
    more = BOOK.replace(
        "name: {type: text, required: true}\n", "name: {type: text, required: true}\n      updated_at: timestamp\n"
    )
    assert more != BOOK
    for text, shown in ((more, True), (BOOK, False)):
        (folder / "workspace.yaml").write_text(text)
        workspace = Workspace.open(folder, url=url, clock=clock)
        assert ("updated_at" in workspace.tables.many("tactics").rows[0]) is shown
        workspace.close()
