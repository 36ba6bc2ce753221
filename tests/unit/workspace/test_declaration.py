"""Declarations: every fault with its line, and what a changed one may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConfigurationError, DeclarationError, StorageError
from agent_memory.workspace import Workspace, parse_declaration
from tests.rows import check_rows
from tests.unit.workspace.conftest import BOOK, prepare

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

HEAD = "workspace: book\ntables:\n"


@check_rows(
    ("text", "said"),
    [
        ("tables: {a: {columns: {b: text}}}", "x.yaml:1:1: workspace: missing"),
        (HEAD + "  a:\n    columns:\n      b: txt\n", "x.yaml:5:7: tables.a.columns.b.type: 'txt' is not 'text'"),
        (HEAD + "  a: {columns: {b: text}, colour: red}\n", "x.yaml:3:27: tables.a.colour: nothing reads this key"),
        (HEAD + "  a: {columns: {B-x: text}}\n", "lower-case letters, digits and _"),
        (HEAD + "  a: {columns: {b: text, b: text}}\n", "x.yaml:3:26: 'b' stands here twice"),
        (HEAD + "  a: {key: c, columns: {b: text}}\n", "x.yaml:3:7: tables.a.key: no column 'c'; there are b"),
        (HEAD + "  a: {columns: {b: {type: integer, references: c}}}\n", "references 'c', which is no table"),
        (HEAD + "  a: {columns: {id: integer}}\n", "this name is the workspace's own"),
        (HEAD + "  ws_a: {columns: {b: text}}\n", "names that begin with ws_"),
        (HEAD + "  a: {columns: {b: {type: json, schema: {type: thing}}}}\n", "'thing' is not valid"),
        (HEAD + "  a: {columns: {b: {type: json, schema: {$ref: 'http://x/y'}}}}\n", "nothing is fetched"),
        (HEAD + "  a: {columns: {b: {type: text, enum: [x], default: y}}}\n", "'y' is not in the enum"),
        (HEAD + "  a: {columns: {b: {type: integer, default: true}}}\n", "True is no integer"),
        (HEAD + "  a: {kind: singleton, columns: {b: {type: text, required: true}}}\n", "there from the beginning"),
        (
            HEAD + "  a: {columns: {b: text}}\nphases:\n  - {name: p, over: a, agents: [w]}\n",
            "needs kind rows and a key",
        ),
        (HEAD + "  a: {columns: {b: text}}\nphases:\n  - {name: p, agents: []}\n", "at least one is needed"),
        (HEAD + "  a: {columns: {b: text}}\nfiles: {x: ../y}\n", "x.yaml:4:9: files.x: a pattern stays inside"),
        (HEAD + "  a: {columns: {b: text}}\ntools: {t: {operation: get, table: z}}\n", "'z' is no table"),
        (HEAD + "  a: &x {columns: {b: text}}\n  c: *x\n", "aliases"),
        ("workspace: [", "x.yaml:2:1: did not find expected node content"),
        ("- 1", "x.yaml:1:1: a declaration is a mapping with `workspace` and `tables`"),
        (
            HEAD + "  a:\n    columns:\n      no: text\n",
            "x.yaml:4:5: tables.a.columns: YAML reads a name here as no text",
        ),
        (
            HEAD + "  a: {columns: {b: text}}\nphases:\n  - {name: p, agents: [x/y]}\n",
            "x.yaml:5:24: phases.0.agents.0.agent: a name here is made of up to 100 letters, digits and _.@-",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(text, "x.yaml")
    assert said in caught.value.message


def test_all_faults_are_told_at_once_and_a_circle_is_one() -> None:
    circle = """
  a: {columns: {b: {type: integer, references: c}}}
  c: {columns: {d: {type: integer, references: a}, e: {type: text, default: 3}}}
"""
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(HEAD + circle, "x.yaml")
    assert "circle: a → c → a" in caught.value.message
    assert "x.yaml:5:52: tables.c.columns.e.default: 3 is no text" in caught.value.message


def test_what_only_adds_is_carried_out(url: str | None, book: Workspace, clock: FrozenClock) -> None:
    prepare(book, 2)
    book.close()
    changed = BOOK.replace("    search: [title, summary]\n", "    search: [title, summary, mood]\n").replace(
        "      title: text\n",
        "      title: text\n      mood: {type: text, default: calm, required: true}\n      done: {type: boolean}\n",
    )
    changed = changed.replace("files:", "  \nfiles:").replace("  style:", "  notes: {columns: {note: text}}\n  style:")
    (book.folder / "workspace.yaml").write_text(changed)
    again = Workspace.open(book.folder, url=url, clock=clock)
    assert [row["mood"] for row in again.tables.many("chapters").rows] == ["calm", "calm"]
    assert [row["number"] for row in again.tables.search("chapters", "calm")] == [1, 2]
    again.tables.save("notes", {"note": "new"})
    again.resume_from_snapshot("PREPARED")
    assert [row["mood"] for row in again.tables.many("chapters").rows] == ["calm", "calm"]
    again.close()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("      draft: text\n", "", "tables.chapters.columns.draft is missing"),
        ("draft: text", "draft: integer", "it was text and is integer now"),
        ("enum: [mindset, script]", "enum: [mindset]", "its enum no longer has script"),
        ("title: text", "title: {type: text, required: true}", "it is required now"),
        ("score: real", "score: real\n      pace: {type: real, required: true}", "give a default"),
        ("items: {type: string}", "items: {type: integer}", "its schema is another one"),
    ],
)
def test_what_rows_might_not_fit_is_refused_with_the_reason(
    url: str | None, book: Workspace, clock: FrozenClock, old: str, new: str, said: str
) -> None:
    book.close()
    assert old in BOOK
    (book.folder / "workspace.yaml").write_text(BOOK.replace(old, new, 1))
    with pytest.raises(DeclarationError, match="might not fit") as caught:
        Workspace.open(book.folder, url=url, clock=clock)
    assert said in caught.value.message
    (book.folder / "workspace.yaml").write_text(BOOK)
    Workspace.open(book.folder, url=url, clock=clock).close()


def test_another_name_is_refused_and_no_empty_workspace_is_begun(
    url: str | None, book: Workspace, clock: FrozenClock
) -> None:
    prepare(book, 1)
    book.close()
    (book.folder / "workspace.yaml").write_text(BOOK.replace("workspace: book", "workspace: novel"))
    with pytest.raises((DeclarationError, StorageError)) as caught:
        Workspace.open(book.folder, url=url, clock=clock)
    told = "no workspace 'novel'" if url is not None else "it was 'book' and is 'novel' now"
    assert told in caught.value.message
    (book.folder / "workspace.yaml").write_text(BOOK)
    again = Workspace.open(book.folder, url=url, clock=clock)
    assert again.tables.many("chapters").total == 1
    again.close()


def test_a_workspace_is_begun_once(url: str | None, book: Workspace, declaration: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="already"):
        Workspace.create(book.folder, declaration, url=url)
    with pytest.raises(ConfigurationError, match="No workspace in"):
        Workspace.open(tmp_path / "elsewhere", url=url)


def test_faults_of_shape_and_content_are_reported_together() -> None:
    text = """
workspace: book
tables:
  chapters: {key: number, columns: {number: integer, title: txt}, key: number}
  terms: {key: name, columns: {term: text}}
  links: {columns: {chapter: {type: integer, references: chapters}, at: {type: text, references: nowhere}}}
phases:
  - {name: write, over: chapters, agents: []}
"""
    types = "'text', 'integer', 'real', 'boolean', 'json', 'timestamp' or 'file'"
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(text, "x.yaml")
    assert str(caught.value).splitlines() == [
        f"x.yaml:4:54: tables.chapters.columns.title.type: 'txt' is not {types}",
        "x.yaml:4:67: 'key' stands here twice",
        "x.yaml:5:11: tables.terms.key: no column 'name'; there are term",
        "x.yaml:6:69: tables.links.columns.at: references 'nowhere', which is no table",
        "x.yaml:8:35: phases.0.agents: at least one is needed",
    ]


def test_a_wrong_name_or_column_hides_no_other_fault() -> None:
    text = """
workspace: Book
tables:
  chapters:
    key: numbr
    columns: {number: intger, at: {type: text, references: nowhere}}
"""
    types = "'text', 'integer', 'real', 'boolean', 'json', 'timestamp' or 'file'"
    name = "a name is made of lower-case letters, digits and _, and begins with a letter"
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(text, "x.yaml")
    assert str(caught.value).splitlines() == [
        f"x.yaml:2:1: workspace: {name}",
        "x.yaml:5:5: tables.chapters.key: no column 'numbr'; there are number, at",
        f"x.yaml:6:15: tables.chapters.columns.number.type: 'intger' is not {types}",
        "x.yaml:6:31: tables.chapters.columns.at: references 'nowhere', which is no table",
    ]
