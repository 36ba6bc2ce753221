"""Groups of lines are the whole text, and no line is in two of them."""

from __future__ import annotations

from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.line_groups import iter_line_groups

LINES = "\n".join(f"Line {number} of a long text about nothing at all." for number in range(400))


def test_line_groups_of_a_long_text_are_the_text() -> None:
    groups = list(iter_line_groups(LINES))
    assert len(groups) > 1
    assert "".join(LINES[start:stop] for start, stop in groups) == LINES
    assert all(LINES[stop : stop + 1] in {"", "\n"} for _, stop in groups)


def test_line_groups_of_one_long_line_are_one() -> None:
    assert list(iter_line_groups("x" * 9_000)) == [(0, 9_000)]
    assert list(iter_line_groups("")) == []


def test_redactor_long_text_finds_codes_in_each_group() -> None:
    codes = ("gate code: 4711", "unlock it with 915377", "recovery codes: a1b2-c3d4")
    text = "\n".join(f"{LINES}\n{code}" for code in codes)
    cleaned = SecretRedactor().redact(text).text
    assert [secret for secret in ("4711", "915377", "a1b2-c3d4") if secret in cleaned] == []
