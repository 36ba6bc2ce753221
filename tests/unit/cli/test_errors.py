"""What a failure looks like to people and to programs: a sentence, a code, what to do, where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import A

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [
        (["show", "mem-ffffffffffff"], 3, "unknown_id"),
        (["list", "-a", "nobody"], 1, "unknown_agent"),
        (["import", "nowhere.jsonl"], 1, "no_file"),
        (["search", "x", "-c", "blah"], 2, "unknown_category"),
        (["forget", A], 2, "usage"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_an_error_has_its_code(bob: Run, command: list[str], code: int, word: str) -> None:
    assert f"[{word}]" in bob(*command, code=code).stderr
    result = bob(*command, "--json", code=code)
    error = json.loads(result.stdout)["error"]
    assert error["code"] == word
    assert error["message"]
    assert error["recovery"]
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [["list", "--limit", "0"], ["list", "--no-such"], ["no-such"]], ids=" ".join)
def test_wrong_usage_is_json_where_that_was_asked_for(bob: Run, arguments: list[str]) -> None:
    result = bob(*arguments, "--json", code=2)
    assert json.loads(result.stdout)["error"]["code"] == "usage"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--trust", "huge"], "'--trust': 'huge' is not one of"),
        (["workspace", "create"], "Did you mean `agent-memory workspace init`?"),
        (["workspace", "statsu"], "Did you mean `agent-memory workspace status`?"),
        (["agents", "foo"], "No command 'foo' in `agent-memory agents`. There are: "),
        (["ingest", "--none"], "Usage: agent-memory ingest [OPTIONS] [FILE]... "),
        (["purge", "--none"], "Usage: agent-memory purge [OPTIONS] [ID]... "),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_usage_is_said_in_plain_words(bob: Run, arguments: list[str], said: str) -> None:
    assert said in " ".join(bob(*arguments, code=2).stderr.replace("│", "").split())


@pytest.mark.parametrize("kind", ["mem", "cnd", "ent", "epi", "res", "top", "sum", "rel"])
def test_the_beginning_of_an_id_is_repeated_and_no_secret(bob: Run, kind: str) -> None:
    assert f"'{kind}-144f'" in bob("show", f"{kind}-144f", code=3).stderr


def test_errors_name_the_whole_path(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = cli("list", "--root", str(tmp_path / "file"), code=1)
    assert str(tmp_path / "file") in result.stderr
    within = tmp_path / "file" / "below"
    error = json.loads(cli("store", "x", "-a", "bob", "--root", str(within), "--json", code=1).stdout)["error"]
    assert error["path"].startswith(str(within))


def test_a_file_that_cannot_be_written_is_named_whole(bob: Run, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "out.yaml"
    assert str(target) in bob("export", str(target), code=1).stderr


def test_import_of_missing_file_names_the_file(bob: Run) -> None:
    assert "No file nothere." in bob("import", "nothere", code=1).stderr


def test_entity_that_is_unknown_is_named(bob: Run) -> None:
    assert "No entity is called 'Norbert'." in bob("knowledge", "entity", "Norbert", code=3).stderr
