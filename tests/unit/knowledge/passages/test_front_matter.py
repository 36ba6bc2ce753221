"""Front matter names a document and dates it; what cannot be read counts for nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.knowledge.intake.document_index import FrontMatter, read_front_matter
from tests.rows import check_rows


def test_front_matter_is_read() -> None:
    text = (
        "---\nid: runbook-7\ncreated: 2026-02-03\ntags: [Ops, '#db']\naliases: the runbook, RB\ntype: guide\n---\n# A\n"
    )
    said = read_front_matter(text)
    assert said == FrontMatter(
        "runbook-7", datetime(2026, 2, 3, tzinfo=UTC), ("Ops", "db"), ("the runbook", "RB"), "guide"
    )
    assert said.metadata == {"document_id": "runbook-7", "aliases": ["the runbook", "RB"], "type": "guide"}


@check_rows("mark", ["\ufeff", ""])
@check_rows("end", ["\r\n", "\n"])
def test_byte_order_mark_and_line_ends_are_no_hindrance(mark: str, end: str) -> None:
    text = end.join(["---", "date: 2026-02-03T10:00:00+02:00", "---", "Text."])
    assert read_front_matter(mark + text).written_at == datetime(2026, 2, 3, 8, tzinfo=UTC)


def test_date_goes_before_created() -> None:
    text = "---\ncreated: 2020-01-01\ndate: 2026-02-03\n---\n"
    assert read_front_matter(text).written_at == datetime(2026, 2, 3, tzinfo=UTC)


@check_rows(
    "text",
    [
        "No front matter.",
        "---\ndate: 2026-02-03\nnever closed",
        "---\ndate: 2026-99-99\n---\n",
        "---\ndate: soon\ntags: 3.5e\n  bad: [\n---\n",
        "---\na: &a [x]\nb: *a\ndate: 2026-02-03\n---\n",
        "---\na: " + "[" * 9_000 + "\n---\n",
        "---\na: " + "x" * 20_000 + "\ndate: 2026-02-03\n---\n",
        "---\n- a: list\n---\n",
        "---\ndate: !!python/object:os.system x\n---\n",
    ],
)
def test_unreadable_front_matter_counts_for_nothing(text: str) -> None:
    assert read_front_matter(text) == FrontMatter()
