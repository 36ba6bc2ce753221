"""What was stored is not looked through again; what is new is, in one piece."""

from __future__ import annotations

from agent_memory.knowledge.pages.rereading import OnlyNew
from agent_memory.redaction import Redaction

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Counting:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def redact(self, text: str) -> Redaction:
        self.seen.append(text)
        return Redaction(text.upper(), ("any",))


class Noting(Counting):
    """Changes nothing."""

    def redact(self, text: str) -> Redaction:
        self.seen.append(text)
        return Redaction(text, ())


def test_only_lines_that_were_not_there_are_looked_through_and_numbers_of_footnotes_make_none_new() -> None:
    redactor = Counting()
    cleaned = OnlyNew("# Lea\n\n- one [^1]\n- two [^2]\n", redactor).redact("# Lea\n\n- new [^1]\n- more\n- two [^3]\n")
    assert redactor.seen == ["- new [^1]\n- more"]
    assert cleaned == Redaction("# Lea\n\n- NEW [^1]\n- MORE\n- two [^3]\n", ("any",))


def test_a_secret_in_a_new_line_is_taken_out() -> None:
    cleaned = OnlyNew("# Lea\n").redact(f"# Lea\n\nThe token is {TOKEN}.\n")
    assert TOKEN not in cleaned.text
    assert cleaned.kinds


PAGE = '# Lea\n\n- {claim} [^1]\n\n## Sources\n\n[^1]: Extracted from {label} (res-1 at 0-9, mem-1): "{quote}"\n'


def test_only_new_line_of_another_page_is_not_checked_again() -> None:
    redactor, checked = Noting(), set[str]()
    OnlyNew("", redactor, checked).redact("# Lea\n\n- one [^1]\n")
    OnlyNew("", redactor, checked).redact("# Ann\n\n- one [^7]\n- two [^8]\n")
    assert redactor.seen == ["# Lea", "- one [^1]", "# Ann", "- two [^8]"]


def test_only_new_footnote_of_a_checked_claim_is_not_checked() -> None:
    redactor, checked = Noting(), set[str]()
    for claim in ("A: one", "A: two", "A: three"):
        page = PAGE.format(claim=claim, label="document", quote=claim[3:])
        OnlyNew("", redactor, checked).redact(page)
    assert [text for text in redactor.seen if "Extracted" in text] == [
        '[^1]: Extracted from document (res-1 at 0-9, mem-1): "one"'
    ]


def test_only_new_secret_in_a_quote_or_label_is_removed_each_time() -> None:
    checked = set[str]()
    for claim, label, quote in (
        (f"is {TOKEN}", "page", f"is {TOKEN}"),
        ("none", "page", f"is {TOKEN}"),
        ("none", f"page {TOKEN}", "none"),
        ("other", f"page {TOKEN}", "other"),
    ):
        cleaned = OnlyNew("", checked=checked).redact(PAGE.format(claim=claim, label=label, quote=quote))
        assert TOKEN not in cleaned.text
        assert cleaned.kinds


def test_only_new_other_line_of_a_known_page_is_checked() -> None:
    redactor, checked = Noting(), set[str]()
    OnlyNew("\n\n", redactor, checked).redact(PAGE.format(claim="one", label="document", quote="one"))
    redactor.seen.clear()
    OnlyNew("", redactor, checked).redact("# Ann\n\n- one [^1]\n\n## Sources\n\nplain line\n")
    assert redactor.seen == ["# Ann", "plain line"]
