"""What was stored is not looked through again; what is new is, in one piece."""

from __future__ import annotations

from agent_memory.knowledge.pages.pages import OnlyNew
from agent_memory.redaction import Redaction

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Counting:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def redact(self, text: str) -> Redaction:
        self.seen.append(text)
        return Redaction(text.upper(), ("any",))


def test_only_lines_that_were_not_there_are_looked_through_and_numbers_of_footnotes_make_none_new() -> None:
    redactor = Counting()
    cleaned = OnlyNew("# Lea\n\n- one [^1]\n- two [^2]\n", redactor).redact("# Lea\n\n- new [^1]\n- more\n- two [^3]\n")
    assert redactor.seen == ["- new [^1]\n- more"]
    assert cleaned == Redaction("# Lea\n\n- NEW [^1]\n- MORE\n- two [^3]\n", ("any",))


def test_a_secret_in_a_new_line_is_taken_out() -> None:
    cleaned = OnlyNew("# Lea\n").redact(f"# Lea\n\nThe token is {TOKEN}.\n")
    assert TOKEN not in cleaned.text
    assert cleaned.kinds
