"""What PostgreSQL is given: names and indexes that it takes, whatever a row holds."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from agent_memory.workspace import parse_declaration
from agent_memory.workspace.database.schema import build_schema

TEXT = "t" * 60


def statements() -> list[str]:
    declared = f"""
workspace: w
tables:
  a: {{columns: {{long: text, number: integer}}, index: [long, number]}}
  {TEXT}: {{columns: {{{TEXT}: {{type: text, unique: true}}}}}}
"""
    schema = build_schema(parse_declaration(declared), "w")
    indexes = [index for table in schema.declared.values() for index in table.indexes]
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return [str(sa.schema.CreateIndex(index).compile(dialect=dialect)) for index in indexes]


def test_a_text_of_any_length_is_indexed() -> None:
    made = {statement.rpartition("(")[2]: statement for statement in statements()}
    assert "USING hash" in made["long)"]
    assert "USING btree" in made["number)"]


def test_no_name_of_an_index_is_cut() -> None:
    names = [index.split('"')[1] for index in statements() if '"' in index]
    assert len(set(names)) == len(names) > 0
    assert max(len(name) for name in names) <= 63
