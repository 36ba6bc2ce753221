"""Known software, firms and standards: in which writing, and beside which words, they are names."""

from __future__ import annotations

import pytest

from agent_memory.entities import mentions_in
from agent_memory.entities.known import known


def names(text: str) -> list[tuple[str, str]]:
    return [(mention.name, mention.kind) for mention in mentions_in(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("does it run on vercel or netlify?", [("vercel", "product"), ("netlify", "product")]),
        ("install it for python3 and for Python 3.12", [("python3", "product"), ("Python", "product")]),
        ("Formatting with black, linting with flake8.", [("black", "product"), ("flake8", "package")]),
        ("black and flake8 were dropped", [("black", "product"), ("flake8", "package")]),
        ("We moved from pip-tools to Poetry.", [("pip-tools", "product"), ("Poetry", "product")]),
        ("undecided between mongo and postgres", [("mongo", "product"), ("postgres", "product")]),
        ("the bluetooth stack drops packets", [("bluetooth", "concept")]),
        ("the thread in slack is long", [("slack", "product")]),
        ("a react component is missing", [("react", "product")]),
        ("All times are kept in UTC, signed with Ed25519.", [("UTC", "concept"), ("Ed25519", "concept")]),
        ("the partners want plain REST over TLS", [("REST", "concept"), ("TLS", "concept")]),
        ("add an ssh key to gitlab", [("ssh", "concept"), ("gitlab", "product")]),
        ("\u90e8\u7f72\u5230vercel\u5427", [("vercel", "product")]),
        ("\u5728\u963f\u91cc\u4e91\u8fd0\u884c", [("\u963f\u91cc\u4e91", "product")]),
        ("React\uc5d0\uc11c \uc624\ub958", [("React", "product")]),
        ("I use PowerShell, not bash", [("PowerShell", "product"), ("bash", "product")]),
        ("chose Redis over celery", [("Redis", "product"), ("celery", "product")]),
        ("replace lodash by left-padder", [("lodash", "package"), ("left-padder", "package")]),
        ("replaced moment with date-fns", [("moment", "package"), ("date-fns", "package")]),
        ("das Docker-Image und die Redis-Instanz", [("Docker", "product"), ("Redis", "product")]),
        ("\u65e7\u7684 babel \u914d\u7f6e\u8981\u5220\u6389", [("babel", "product")]),
        ("dodaj to do prettier prosz\u0119", [("prettier", "product")]),
        ("npm i -g @scope/tool", [("npm", "product"), ("@scope/tool", "package")]),
    ],
)
def test_known_names_are_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert names(text) == [(name, kind) for name, kind in expected]


@pytest.mark.parametrize(
    "text",
    [
        "the black cat and the rest of us react to poetry",
        "Poetry is read here every week",
        "Notion of time is lost",
        "we rest in spring and go by bus",
        "in slack water the boats turn",
        "the API, the UI and the VAT of the URL",
        "parse the JSON, then write CSV or PDF",
        "edit x/vercel/y or vercel-old",
        "wait a moment with it and replace the moment by another",
        "we moved from polling to event-sourcing",
        "to jest dobre i nie jest gotowe",
        "a prettier page, and not bash-like",
    ],
)
def test_the_same_as_common_words_are_none(text: str) -> None:
    assert [name for name, _ in names(text) if "/" not in name] == []


def test_no_name_is_listed_in_two_ways() -> None:
    listed = known()
    small = {name.lower() for name in listed.free}
    assert not [name for name in listed.written if name.lower() in small]
    assert not [name for name in listed.context if name in small]
    assert set(listed.near) <= set(listed.context)
    assert all(name == name.lower() for name in listed.context)
    assert all(name and "[" not in name and "#" not in name.removesuffix("#") for name in listed.free)
