"""`agent-memory export FILE.zip`: an account of all that is held, of the agent or about a name, for people to read."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.conftest import A, B, C, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

TALK = """{"role": "user", "name": "Ann Miller", "content": "Ann Miller moved to the Hamburg office in May."}
{"role": "user", "name": "Bo", "content": "The printer is broken."}
"""


def contents(file: Path) -> dict[str, str]:
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def records(found: dict[str, str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in found["records.jsonl"].splitlines()]


def test_all_that_an_agent_holds_is_told_of_every_kind(bob: Run, tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text(TALK)
    long = tmp_path / "long.md"
    long.write_text("# Handbook\n\n" + "The office has a printer. " * 800 + "The last word is zebra.\n")
    bob("ingest", str(talk), str(long))
    bob("archive", "add", B)
    forgotten = document(bob("store", "Forgotten words of old.", "--json"))["memory_id"]
    bob("forget", forgotten, "--yes")
    changed = document(bob("store", "The door code is blue.", "--json"))["memory_id"]
    bob("update", changed, "--content", "The door is green.")
    file = tmp_path / "bob.zip"
    said = bob("export", str(file))
    assert "README.md" in said.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    found = contents(file)
    kinds = {each["kind"] for each in records(found)}
    assert {"memory", "archived", "resource", "episode", "entity", "tidy_run"} - {"tidy_run"} <= kinds
    assert "Maria likes tea." in found["archive.md"]
    assert "Maria likes tea." not in found["memories.md"]
    assert f"## {forgotten} (forgotten 2" in found["memories.md"]
    assert "Forgotten words of old." in found["memories.md"]
    assert found["memories.md"].index("The door is green.") < found["memories.md"].index("The door code is blue.")
    assert "zebra" in found["documents.md"]
    assert "The printer is broken." in found["turns.md"]
    assert {A, C} <= {each["id"] for each in records(found)}
    assert "files/scratchpad.yaml" in found
    assert changed in found["events.jsonl"]
    readme = found["README.md"]
    assert "What the agent bob holds" in readme
    assert "Forgotten: 1 record of these." in readme
    assert all(word in readme for word in ("backups", "workspaces", "transcripts of the host", "purge"))


def test_what_is_held_about_a_name_is_told_and_nothing_else(bob: Run, tmp_path: Path, root: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text(TALK)
    bob("ingest", str(talk))
    bob("store", "Annual reports are due in May.")
    bob("archive", "add", document(bob("store", "Ann Miller keeps the keys.", "--json"))["memory_id"])
    named = document(bob("store", "The badge of ann  miller is 17.", "--json"))["memory_id"]
    file = tmp_path / "ann.zip"
    told = document(bob("export", str(file), "--about", "Ann Miller", "--json"))
    assert told["names"][0] == "Ann Miller"
    found = contents(file)
    texts = " ".join(found.values())
    assert "keeps the keys" in found["archive.md"]
    assert "moved to the Hamburg office" in found["turns.md"]
    assert named in found["memories.md"]
    assert all(word not in texts for word in ("Annual", "printer", "Maria", "PostgreSQL"))
    assert told["records"] == {kind: sum(each["kind"] == kind for each in records(found)) for kind in told["records"]}
    (line,) = [line for line in found["files/scratchpad.yaml"].splitlines() if "badge" in line]
    number, _, rest = line.partition(": ")
    assert (root / "bob" / "scratchpad.yaml").read_text().splitlines()[int(number) - 1] == rest
    assert "`Ann Miller`" in found["README.md"]
    assert all(any(each["id"] in line for each in records(found)) for line in found["events.jsonl"].splitlines())


def test_a_name_of_which_nothing_is_held_gives_an_archive_that_says_so(bob: Run, tmp_path: Path) -> None:
    file = tmp_path / "zoe.zip"
    assert "Nothing was found" in bob("export", str(file), "--about", "Zoe").stderr
    found = contents(file)
    assert set(found) == {"README.md", "records.jsonl"}
    assert "Nothing was found." in found["README.md"]
    assert "Not searched" in found["README.md"]


def test_what_a_memory_says_is_no_link_no_picture_and_no_heading(bob: Run, tmp_path: Path) -> None:
    text = "````\n# Heading of Ann\n![x](http://example.com/x.png)\n<script>alert(1)</script>\n```"
    bob("store", text)
    bob("update", B, "--tag", "a|b`c")
    file = tmp_path / "all.zip"
    bob("export", str(file))
    page = contents(file)["memories.md"]
    fence = "`" * 5
    block = page[page.index(f"{fence}text\n") : page.rindex(f"\n{fence}\n")]
    assert "example.com" in block
    assert "<script>" in block
    assert page.count("<script>") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("-", "--about", "Ann"), 2), (("all.jsonl", "--about", "Ann"), 2), (("all.zip", "--about", "  "), 2)],
)
def test_odd_wishes_are_wrong_usage(bob: Run, tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    first, *more = arguments
    bob("export", first if first == "-" else str(tmp_path / first), *more, code=code)
    assert [each.name for each in tmp_path.iterdir() if each.suffix in {".zip", ".tmp"}] == []


def test_an_archive_is_not_written_over_a_file_nor_among_the_memories(bob: Run, tmp_path: Path, root: Path) -> None:
    file = tmp_path / "all.zip"
    file.write_text("mine")
    assert "exists" in bob("export", str(file), code=1).stderr
    assert file.read_text() == "mine"
    bob("export", str(file), "--force")
    bob("export", str(root / "bob" / "all.zip"), code=1)


def test_what_was_purged_is_not_held(bob: Run, tmp_path: Path) -> None:
    named = document(bob("store", "The badge of Ann Miller is 17.", "--json"))["memory_id"]
    bob("purge", named, "--yes")
    file = tmp_path / "ann.zip"
    bob("export", str(file), "--about", "Ann Miller")
    assert "badge" not in " ".join(contents(file).values())
