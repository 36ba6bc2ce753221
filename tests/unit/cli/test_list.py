"""`list`: by field, in order, in portions; and the forms its rows can have."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.cli.options import open_service
from agent_memory.cli.screen import format_rows
from tests.unit.cli.conftest import A, B, C

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def listed(cli: Run, *options: str) -> list[str]:
    return [json.loads(line)["id"] for line in cli("list", "--format", "jsonl", *options).stdout.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [C, B]), (["--sort", "oldest"], [B, C]), (["-c", "decision"], [C]), (["-c", "Decision"], [C]),
        (["-t", "tea", "-t", "drinks"], []), (["-t", "Maria", "-t", "drinks"], [B]), (["--since", "2026-03-01"], [C]),
        (["--until", "2026-03-01"], [B]), (["--superseded"], [A]), (["--expired"], []), (["--pinned"], []),
        (["--trust", "medium"], [C, B]), (["--trust", "low"], []), (["-n", "1"], [C]),
        (["-n", "1", "--offset", "1"], [B]), (["--offset", "9"], []), (["--all"], [C, B]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_list_has_what_was_asked_for(bob: Run, options: list[str], expected: list[str]) -> None:
    assert listed(bob, *options) == expected


def test_pinned_and_expired_memories_are_found_by_that(bob: Run, root: Path) -> None:
    async def expire() -> None:
        async with open_service("bob", root) as service:
            await service.update(C, {"expires_at": "2026-03-11"}, may_have_expired=True)

    bob("pin", B)
    asyncio.run(expire())
    assert listed(bob, "--pinned") == [B]
    assert listed(bob, "--expired") == [C]
    assert listed(bob, "--expired", "--superseded") == [C]  # with what had replaced it, the older one is valid again
    assert "1 expired" in bob("status").stdout
    assert json.loads(bob("status", "--json").stdout)["counts"]["expired"] == 1


def test_how_many_there_are_in_all_is_told(bob: Run) -> None:
    assert json.loads(bob("list", "-n", "1", "--json").stdout)["total"] == 2


def test_fields_are_chosen_in_their_order(bob: Run) -> None:
    assert bob("list", "--fields", "content,id", "--format", "csv").stdout.splitlines() == [
        "content,id",
        f"The ledger is in PostgreSQL.,{C}",
        f"Maria likes tea.,{B}",
    ]
    assert json.loads(bob("list", "--fields", "id", "--json").stdout)["memories"] == [{"id": C}, {"id": B}]
    table = bob("list", "--fields", "tags,content").stdout.splitlines()
    assert table[0].split() == ["tags", "content"]
    assert "drinks, maria" in table[2]


def test_every_command_with_rows_has_the_forms(bob: Run) -> None:
    for command in (["search", "tea"], ["show", B], ["list"], ["agents"]):
        assert list(csv.DictReader(io.StringIO(bob(*command, "--format", "csv").stdout)))
        assert (
            json.loads(bob(*command, "--format", "json").stdout).keys()
            == json.loads(bob(*command, "--json").stdout).keys()
        )
        assert len(bob(*command, "--format", "table").stdout.splitlines()) >= 2


def test_a_spreadsheet_gets_no_formula_and_a_terminal_no_code() -> None:
    (_, line) = format_rows([{"text": '=HYPERLINK("x")\x1b[2J'}], "csv", ["text"], None).splitlines()
    assert line == '"\'=HYPERLINK(""x"")\\x1b[2J"'


def test_a_text_of_several_lines_is_one_value_of_csv() -> None:
    text = format_rows([{"id": A, "text": "First,\nsecond."}], "csv", ["id", "text"], None)
    assert list(csv.reader(io.StringIO(text))) == [["id", "text"], [A, "First,\nsecond."]]


def test_nothing_found_is_no_line_of_csv(bob: Run) -> None:
    assert bob("list", "--pinned", "--format", "csv").stdout == ""
    assert bob("list", "--pinned", "--format", "csv", "--fields", "id").stdout == "id\n"


def test_a_table_of_many_columns_fits_the_terminal_and_names_fields_as_they_are() -> None:
    columns = ["id", "trust", "content", "pinned", "expires_at"]
    row = {"id": A, "trust": "high", "content": "Maria likes tea. " * 9, "pinned": True}
    lines = format_rows([{**row, "expires_at": "2027-01-01T00:00:00Z"}], "table", columns, 80).splitlines()
    assert lines[0].split() == columns
    assert max(map(len, lines)) <= 80
    assert A in lines[1]
    assert "2027-01-01" in lines[1]
    assert "…" in lines[1]


def test_a_table_fits_the_terminal() -> None:
    rows = [{"id": "a", "content": "漢字 " * 40}, {"id": "bb", "content": "short"}]
    lines = format_rows(rows, "table", ["id", "content"], 40).splitlines()
    assert lines[1].endswith("…")
    assert max(map(len, lines)) <= 40
    assert lines[2] == "bb  short"


def test_items_are_listed_with_an_option_and_always_found(bob: Run, root: Path) -> None:
    async def draw() -> str:
        async with open_service("bob", root) as service:
            stored = await service.store({"content": "Ann: the harbour is open", "source": {"kind": "extraction"}})
            return stored.memory.id

    item = asyncio.run(draw())
    assert listed(bob) == [C, B]
    assert listed(bob, "--items") == [item, C, B]
    left = "1 item is left out: extracted from documents and conversations. --items also lists them."
    assert left in bob("list", "--tag", "nowhere").stderr
    for options in ((), ("--items",), ("--kind", "passage"), ("--kind", "passage", "--kind", "note")):
        found = bob("search", "harbour", *options)
        assert f"{item} · passage" in found.stdout
        assert "left out" not in found.stderr
    bob("search", "harbour", "--kind", "note", code=3)
    assert "harbour" in bob("show", item[:10]).stdout
    assert "harbour" in bob("export", "--format", "jsonl").stdout
    assert "items" in bob("status").stdout
