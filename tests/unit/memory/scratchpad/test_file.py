"""scratchpad.yaml: what was rendered shows no edit, and every edit of a person comes back as exactly that edit."""

from __future__ import annotations

import contextlib
from hashlib import sha256
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.memory.scratchpad_file import RenderedEntry, read_edits, render_file
from agent_memory.models import Memory, new_memory_id
from tests.rows import check_rows
from tests.support import memory_of

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
awkward = st.sampled_from(
    [
        "- a",
        "# rendered 0123456789abcdef",
        "a: b",
        "'",
        '"',
        "|",
        "\n# x\n",
        " x ",
        "x\r\ny",
        "\ufeffx",
        "\x85",
        "2026-01-01",
    ]
)
contents = (st.text(characters, min_size=1, max_size=60) | awkward).filter(lambda text: text.strip() != "")
tags = st.lists(st.text(characters, min_size=1, max_size=12), max_size=3)
memories = st.builds(
    memory_of, contents, tags=tags, pinned=st.booleans(), category=st.sampled_from(["note", "decision"])
)
pads = st.lists(memories, max_size=5)


def parsed(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load(text) or [])


def edited(text: str, items: list[dict[str, Any]]) -> str:
    """Return the file as an editor saves it: other entries, the last lines as they were."""
    return yaml.dump(items, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False) + footer_of(text)


def footer_of(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith(("#:", "# rendered ")))


@given(pads)
def test_what_was_rendered_shows_no_edit(pad: list[Memory]) -> None:
    text = render_file(pad, "bob")
    assert not read_edits(text)
    assert [item["content"] for item in parsed(text)] == [memory.content for memory in pad]


@given(pads, pads, st.data())
def test_what_was_rendered_before_makes_no_difference(first: list[Memory], second: list[Memory], data: Any) -> None:
    stay = data.draw(st.lists(st.sampled_from(first), unique_by=lambda memory: memory.id)) if first else []
    new = [data.draw(st.none() | contents) for _ in stay]
    now = [one.model_copy(update={"content": text} if text else {}) for one, text in zip(stay, new, strict=True)]
    now += second
    known: dict[str, RenderedEntry] = {}
    assert render_file(first, "bob", known) == render_file(first, "bob")
    assert render_file(now, "bob", known) == render_file(now, "bob")
    assert known.keys() == {memory.id for memory in now}, "what left is still in memory"


def test_only_what_is_new_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, RenderedEntry] = {}
    pad = [memory_of(f"fact {number}") for number in range(50)]
    render_file(pad, "bob", known)
    dumped: list[str] = []
    real = yaml.dump

    def dump(items: list[dict[str, Any]], **options: Any) -> Any:
        dumped.extend(item["content"] for item in items)
        return real(items, **options)

    monkeypatch.setattr(yaml, "dump", dump)
    render_file([memory_of("new"), *pad[:-1]], "bob", known)
    assert dumped == ["new"]


@given(pads)
def test_a_file_that_was_only_reformatted_shows_no_edit(pad: list[Memory]) -> None:
    """Whatever a memory says, it survives the way through the file: an edit elsewhere must not mangle it."""
    text = render_file(pad, "bob")
    assert not read_edits(edited(text, parsed(text)))
    assert not read_edits("# a remark\n" + text)


@given(pads, st.data())
def test_any_mix_of_edits_comes_back_as_it_was_made(pad: list[Memory], data: st.DataObject) -> None:
    text = render_file(pad, "bob")
    kept, changed, removed = [], {}, []
    for item in parsed(text):
        match data.draw(st.sampled_from(["keep", "change", "remove"])):
            case "change":
                item["content"] = data.draw(contents.filter(lambda new, old=item["content"]: new != old))
                changed[item["id"]] = item["content"]
                kept.append(item)
            case "remove":
                removed.append(item["id"])
            case _:
                kept.append(item)
    added = data.draw(st.lists(contents, max_size=2))
    kept += [{"content": content} for content in added]
    edits = read_edits(edited(text, data.draw(st.permutations(kept))))
    assert {memory_id: change["content"] for memory_id, change in edits.changed.items()} == changed
    assert sorted(item["content"] for item in edits.added) == sorted(added)
    assert sorted(edits.removed) == sorted(removed)


def test_a_file_of_an_earlier_version_with_its_entries_in_the_last_line_is_read() -> None:
    memory, gone = memory_of("tea"), memory_of("milk")
    parts = repr([memory.content, "note", [], False]).encode(), repr([gone.content, "note", [], False]).encode()
    index = f" {memory.id}:{sha256(parts[0]).hexdigest()[:8]} {gone.id}:{sha256(parts[1]).hexdigest()[:8]}"
    items = [item for item in parsed(render_file([memory, gone], "bob")) if item["id"] == memory.id]
    edits = read_edits(f"{yaml.safe_dump(items, sort_keys=False)}# rendered {'0' * 16}{index}\n")
    assert (edits.changed, edits.added, edits.removed) == ({}, [], [gone.id])


def test_a_full_scratchpad_ends_in_a_few_short_lines() -> None:
    text = render_file([memory_of(f"fact {number}") for number in range(50)], "bob")
    lines = footer_of(text).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 100
    assert text.endswith(f"{lines[-1]}\n")


def test_emoji_are_written_as_themselves_and_what_nobody_sees_is_not() -> None:
    memory = memory_of(
        'party \U0001f389 "quoted \U0001f469\u200d\U0001f467" \\U0001F389 \ue000 \U000e0041', tags=["\U0001f3f3"]
    )
    text = render_file([memory], "bob")
    assert "party \U0001f389" in text
    assert "\U0001f469\u200d\U0001f467" in text
    assert "- \U0001f3f3" in text
    assert "\U000e0041" not in text
    assert parsed(text)[0]["content"] == memory.content
    assert not read_edits("# a remark\n" + text)


def test_taking_out_tags_or_a_pin_is_an_edit_too() -> None:
    memory = memory_of("tea", tags=["hot"], pinned=True)
    text = render_file([memory], "bob")
    (item,) = parsed(text)
    del item["tags"], item["pinned"]
    change = read_edits(edited(text, [item])).changed[memory.id]
    assert (change["tags"], change["pinned"]) == ([], False)


def test_an_entry_written_below_the_last_line_is_seen_and_so_is_one_taken_out() -> None:
    stays, goes = memory_of("tea"), memory_of("coffee")
    text = render_file([stays, goes], "bob")
    footer = footer_of(text).rstrip()
    without = "".join(line for line in text.splitlines(keepends=True)[:3])
    without += yaml.safe_dump([item for item in parsed(text) if item["id"] == stays.id], sort_keys=False)
    edits = read_edits(f"{without}{footer}\n- content: milk\n")
    assert edits.added == [{"content": "milk"}]
    assert edits.removed == [goes.id]
    assert edits.changed == {}


def test_a_copied_entry_is_a_new_one() -> None:
    memory = memory_of("tea")
    text = render_file([memory], "bob")
    (item,) = parsed(text)
    edits = read_edits(edited(text, [item, {**item, "content": "tea at five"}]))
    assert edits.changed == {}
    assert [added["content"] for added in edits.added] == ["tea at five"]


def test_without_its_last_line_nothing_counts_as_taken_out() -> None:
    text = render_file([memory_of("tea"), memory_of("coffee")], "bob")
    edits = read_edits(yaml.safe_dump(parsed(text)[:1]))
    assert edits.removed == []
    assert len(edits.changed) == 1


def test_an_id_nobody_rendered_is_taken_as_a_change() -> None:
    unknown = new_memory_id()
    edits = read_edits(render_file([], "bob").replace("[]", f"- {{id: {unknown}, content: x}}"))
    assert set(edits.changed) == {unknown}


@check_rows("text", ["", "\n", "# only a remark\n"])
def test_an_emptied_file_without_its_last_line_says_nothing(text: str) -> None:
    assert not read_edits(text)


def test_an_emptied_list_takes_everything_out() -> None:
    pad = [memory_of("tea"), memory_of("coffee")]
    assert read_edits(edited(render_file(pad, "bob"), [])).removed == [memory.id for memory in pad]


@check_rows(
    "text",
    [
        "content: x",
        "- x",
        "- [x]",
        "- {id: mem-0123456789ab}",
        "- {id: 5, content: x}",
        "- {id: ../x, content: x}",
        "- {content: x",
        "a: b: c",
        "\t- x",
        "- content: !!python/object:os.system x",
        "- content: 2026-99-99",
        "--- x\n--- y",
        "- &a [*a]",
        "- content: &a x\n- content: *a",
        "- <<: {content: x}",
        "- ? !!merge m\n  : {content: x}",
        "\x07",
        "\udcff",
        "[" * 5000,
    ],
)
def test_what_is_no_list_of_entries_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        read_edits(text)


@check_rows("tags", ["5", "x", "{a: b}", "[[1], {}]", "true", "2026-01-01", "null"])
def test_odd_tags_are_an_edit_for_the_write_path_to_judge(tags: str) -> None:
    memory = memory_of("tea")
    text = render_file([memory], "bob").replace("category: note", f"category: note\n  tags: {tags}")
    edits = read_edits(text)
    assert set(edits.changed) <= {memory.id}


def test_the_reason_of_a_refusal_does_not_quote_the_file() -> None:
    with pytest.raises(ValidationError) as refused:
        read_edits("- content: open\n- topsecretword: [unclosed\n- !topsecretword x\n")
    assert "topsecretword" not in refused.value.message
    assert "line" in refused.value.message


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_no_text_whatever_makes_reading_crash(text: str) -> None:
    for attempt in (text, render_file([memory_of("tea")], "bob") + text):
        with contextlib.suppress(ValidationError):
            read_edits(attempt)


def test_without_libyaml_the_same_files_are_written_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback in pure Python must not mangle what it cannot write plainly."""
    for name in ("CSafeLoader", "CSafeDumper"):
        monkeypatch.delattr(yaml, name)
    pad = [memory_of(text) for text in ("a\x85b", "0\x85", "x\n\x85", "a\u2028b", " b ", "a\r\nb", "\ufeff", "🙂 é")]
    text = render_file(pad, "bob")
    assert [item["content"] for item in parsed(text)] == [memory.content for memory in pad]
    assert not read_edits("# a remark\n" + text)


def test_a_file_nested_beyond_any_stack_is_refused_and_ends_no_process() -> None:
    with pytest.raises(ValidationError, match="no longer YAML"):
        read_edits("- " * 100_000 + "x")
