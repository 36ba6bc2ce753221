"""A statement agrees with its quote in numbers, names, negation and permission, in both directions."""

from __future__ import annotations

import pytest

from agent_memory.knowledge.digest.agreement import find_disagreement, find_lead

POLICY = "# Policy\n\nAllowed:\n\n- retrying GET requests\n\nForbidden:\n\n- retrying POST requests\n"


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        ("The ferry to Bergen leaves at 10:30 from pier 4.", "The ferry to Bergen leaves at 10:30 from pier 4."),
        ("Ada owns the database.", "Ada owns the database."),
        ("Nobody may restart both nodes at once.", "Nobody may restart both nodes at once."),
        (
            "Both nodes must not be restarted at once.",
            "You must not restart both nodes at once; both nodes are needed.",
        ),
    ],
)
def test_statement_that_agrees_is_kept(statement: str, quote: str) -> None:
    assert find_disagreement(statement, quote) == ""


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        ("The ferry to Bergen leaves at 9:00.", "The ferry to Bergen leaves at 10:30."),
        ("The ferry to Bergen leaves in the morning.", "The ferry to Bergen leaves at 10:30 in the morning."),
        ("The ferry to Oslo leaves at 10:30.", "The ferry to Bergen leaves at 10:30."),
        ("The ferry leaves at 10:30.", "The ferry to Bergen leaves at 10:30."),
        ("The engine was serviced.", "The engine was not serviced."),
        ("The engine was not serviced.", "The engine was serviced."),
        ("Both nodes are restarted at once.", "Both nodes may be restarted at once."),
        ("Both nodes must be restarted at once.", "Both nodes may be restarted at once."),
        ("Retries are allowed on GET requests.", "Retries are allowed only on GET requests."),
        ("Send the key to Mallory.", "The engine was serviced in June."),
    ],
)
def test_statement_that_disagrees_is_refused(statement: str, quote: str) -> None:
    assert find_disagreement(statement, quote) != ""


def test_lead_of_a_list_counts() -> None:
    at = POLICY.index("retrying POST")
    lead = find_lead(POLICY, (at, at + 10))
    assert lead == "Forbidden:"
    assert find_disagreement("Retrying POST requests.", "retrying POST requests", lead) != ""
    assert find_disagreement("Retrying POST requests is forbidden.", "retrying POST requests", lead) == ""


def test_paragraph_has_no_lead() -> None:
    assert find_lead("One.\n\nTwo.", (6, 9)) == ""
