"""Documents are cut by their structure: a passage keeps its heading, a list its lead, a row its table."""

from __future__ import annotations

from agent_memory.knowledge.passages.sections import MOST_CHARS, cut_passages, leave_out
from tests.rows import check_rows

POLICY = """# Retry policy

Allowed:

- retrying GET requests

Forbidden:

- retrying POST requests
- retrying after a 401

`max_retries`
: How often a request is tried again.

| code | retried |
|---|---|
| 429 | yes |

Run it like this:

```bash
# not a heading
retry --dry-run
```
"""


def test_section_that_fits_is_one_passage() -> None:
    [passage] = cut_passages(POLICY)
    assert passage.heading == "Retry policy"
    assert passage.text == f"Retry policy\n\n{POLICY.partition('policy')[2].strip()}"
    assert POLICY[passage.start : passage.end] == passage.text.partition("\n\n")[2]


def test_front_matter_is_not_a_passage() -> None:
    [passage] = cut_passages("---\ntitle: Ferry\n---\n\nThe ferry leaves from pier nine.\n")
    assert passage.text == "The ferry leaves from pier nine."


def test_rule_at_the_start_is_not_front_matter() -> None:
    texts = [passage.text for passage in cut_passages("---\nThe ferry leaves.\n\n---\n\nThe bar opens.\n")]
    assert "The ferry leaves" in "\n".join(texts)


@check_rows("heading", ["## Berth\n\n", "Berth\n-----\n\n", "== Berth\n\n"])
def test_heading_path_is_repeated(heading: str) -> None:
    text = f"# Harbour\n\nIt is old.\n\n{heading}{'The pier is long. ' * 200}"
    first, *others = cut_passages(text)
    assert first.text == "Harbour\n\nIt is old."
    assert len(others) > 2
    assert {passage.heading for passage in others if "== " not in heading} <= {"Harbour \u203a Berth"}
    assert all(passage.text.startswith(f"{passage.heading}\n\nThe pier") for passage in others)


def test_long_list_repeats_its_lead() -> None:
    members = "".join(f"- sending the secret number {number} to another host\n" for number in range(80))
    passages = cut_passages(f"# Policy\n\nStrictly forbidden is:\n\n{members}")
    assert len(passages) > 3
    assert all("Strictly forbidden is:" in passage.text for passage in passages)
    found = [line for passage in passages for line in passage.text.splitlines() if line.startswith("- ")]
    assert found == members.splitlines()


def test_nested_list_repeats_its_outer_items() -> None:
    inner = "".join(f"  - moving the part {number} of the engine\n" for number in range(60))
    passages = cut_passages(f"- Done:\n{inner}- Held for the next major:\n{inner.replace('moving', 'removing')}")
    for passage in passages:
        lines = passage.text.splitlines()
        if any("removing" in line for line in lines):
            assert "- Held for the next major:" in lines
        if any("moving" in line and "removing" not in line for line in lines):
            assert "- Done:" in lines


def test_long_table_repeats_its_first_row() -> None:
    rows = "".join(f"| {code} | only after {code} seconds of silence |\n" for code in range(100, 180))
    passages = cut_passages(f"# Codes\n\nCodes of the server:\n\n| code | retried |\n|---|---|\n{rows}")
    assert len(passages) > 2
    assert all("| code | retried |" in passage.text and "Codes of the server:" in passage.text for passage in passages)


def test_long_code_repeats_its_lead() -> None:
    lines = "".join(f"command --number {number} --of-many\n" for number in range(90))
    passages = cut_passages(f"Never run this in production:\n\n```bash\n{lines}```\n")
    assert len(passages) > 2
    assert all(passage.text.startswith("Never run this in production:") for passage in passages)


def test_code_in_a_list_stays_in_it() -> None:
    [passage] = cut_passages("1. Stop it:\n   ```\n   stop now\n   ```\n2. Start it.\n")
    assert passage.text.endswith("2. Start it.")


def test_heading_without_text_is_kept_where_nothing_is_below() -> None:
    texts = [passage.text for passage in cut_passages("# Plan\n\n## Ask Ada\n\n## Later\n\nPaint it.\n")]
    assert texts == ["Plan \u203a Ask Ada", "Plan \u203a Later\n\nPaint it."]


def test_settings_keep_comments_and_the_keys_above() -> None:
    hosts = "".join(f"    - host-{number}.example.org  # rented\n" for number in range(60))
    passages = cut_passages(f"# Servers\nservers:\n  berlin:\n{hosts}", is_settings=True)
    assert passages[0].text.startswith("# Servers\nservers:")
    assert all("servers:" in passage.text and "  berlin:" in passage.text for passage in passages)
    [table] = cut_passages("[pool]\nsize = 3\n", is_settings=True)
    assert table.text == "[pool]\n\nsize = 3"


@check_rows(
    "text",
    [
        POLICY * 20,
        "word " * 3_000,
        "x" * 9_000,
        "# " + "long heading " * 60 + "\n\n" + "Text. " * 900,
        "".join(f"{'  ' * depth}- item {depth} of the list\n" for depth in range(300)),
        "a: 1\n" * 2_000,
        "A lead. " * 300 + "\n\n" + "- member of the list\n" * 200,
    ],
)
def test_passage_is_never_longer_than_its_limit(text: str) -> None:
    for is_settings in (False, True):
        passages = cut_passages(text, is_settings=is_settings)
        assert passages
        assert max(len(passage.text) for passage in passages) <= MOST_CHARS
        assert all(passage.start < passage.end for passage in passages)


def test_comments_of_the_author_are_left_out() -> None:
    text = "# Boat\n\nIt is old. <!-- send the key\nto me --> It is red.\n\n%% a remark %%\n\nBuy rope.\n\n<!-- open"
    assert [passage.text for passage in cut_passages(text)] == [
        "Boat\n\nIt is old.  It is red.\n\n\nBuy rope.\n\n<!-- open"
    ]
    assert cut_passages("<!-- nothing else -->") == []
    assert "<!-- kept -->" in cut_passages("```html\n<!-- kept -->\n```\n")[0].text


def test_unwanted_words_are_left_out_with_the_rest_in_parts() -> None:
    text = "# Boat\n\nIt is old.\n\nIt leaks.\n\nIt is red.\n"
    [passage] = cut_passages(text)
    left = leave_out(passage, text, ["It leaks."])
    assert [part.text for part in left] == ["Boat\n\nIt is old.", "Boat\n\nIt is red."]
    assert [text[part.start : part.end] for part in left] == ["It is old.", "It is red."]
    assert leave_out(passage, text, ["It is old.\n\nIt leaks.\n\nIt is red."]) == []
    assert leave_out(passage, text, ["It sinks."]) == [passage]


def test_text_left_out_may_be_wrapped_again() -> None:
    text = "# Boat\n\nIt is old. THE BOAT\n  leaks at the bow. It is red."
    (passage,) = cut_passages(text)
    left = leave_out(passage, text, ["The boat leaks at the bow."])
    assert [part.text for part in left] == ["Boat\n\nIt is old.", "Boat\n\nIt is red."]


def test_text_left_out_of_list_leaves_no_bare_dash() -> None:
    text = "# Boat\n\n- The boat leaks.\n- It is red."
    (passage,) = cut_passages(text)
    assert [part.text for part in leave_out(passage, text, ["The boat leaks."])] == ["Boat\n\n- It is red."]


def test_no_word_is_lost_or_moved() -> None:
    text = f"{POLICY * 9}\n{'The pier is long. ' * 300}"
    passages = cut_passages(text)
    places = [(passage.start, passage.end) for passage in passages]
    assert places == sorted(places)
    words = [word for start, end in places for word in text[start:end].split()]
    assert words == text.replace("# Retry policy\n", "").split()


@check_rows(
    "markup",
    [
        "[a]: https://a.example\n[b c]: https://b.example/x",
        "(rename-event)=",
        ".. _api:",
        "[![CI](https://ci.example/x.svg)](https://ci.example) ![logo](logo.png)",
        '<p align="center">\n<img src="x.png" alt="x">\n</p>',
    ],
)
def test_cut_passages_of_markup_alone_returns_none(markup: str) -> None:
    passages = cut_passages(f"# Guide\n\nPress the red button.\n\n## Links\n\n{markup}\n")

    assert [passage.text for passage in passages] == ["Guide\n\nPress the red button."]


def test_cut_passages_of_words_next_to_markup_keeps_both() -> None:
    (passage,) = cut_passages("[a]: https://a.example\nSee [a] for the plan.")

    assert passage.text == "[a]: https://a.example\nSee [a] for the plan."


@check_rows("purged", ["# \u2588\u2588\u2588", "\u2588\u2588\u2588", "## Keys\n\n\u2588\u2588\u2588.", "- \u2588!"])
def test_passages_of_purged_words_are_left_out(purged: str) -> None:
    assert [passage.text for passage in cut_passages(f"# Port\n\nIt is 8080.\n\n{purged}\n")][1:] == []


def test_comments_next_to_code_and_within_lines_are_left_out() -> None:
    text = "Buy %%secretly%% rope at 5%% or 6%% off.\n\n```\n%% code %%\n```\n\n%%\nhidden\n%%\nPaint <!-- x --> it."
    [passage] = cut_passages(text)
    assert passage.text == "Buy  rope at 5%% or 6%% off.\n\n```\n%% code %%\n```\n\nPaint  it."
