"""Rules of gitleaks as data: written for Go's RE2, understood by Python, and nothing in them that looks like a key."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from scripts.gitleaks import REST, RULES, converted, python
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path


@check_rows(
    ("pattern", "matches", "others"),
    [
        (r"\b(p8e-(?i)[a-z]{2})$", ["p8e-aB"], ["P8E-ab"]),
        ("x(?i)a|b", ["xA", "B"], ["XA"]),
        ("((?i)a)b", ["Ab"], ["AB"]),
        (r"[[:alnum:]_]{3}", ["a1_"], ["a-b"]),
        (r"a\z", ["a"], ["a\n"]),
        (r"\(?i\)[)(|]", ["(i)|", "i)("], ["i)x"]),
        ("(?i:a)b", ["Ab"], ["aB"]),
    ],
)
def test_a_pattern_of_re2_means_the_same_in_python(pattern: str, matches: list[str], others: list[str]) -> None:
    assert [text for text in [*matches, *others] if re.search(python(pattern), text)] == matches


def test_what_stands_before_a_keyword_is_left_out_and_keys_of_documentations_are() -> None:
    lead = r"(?i)[\w.-]{0,50}?(?:acme)=([a-z]{4})"
    rule = converted(
        {"regex": lead, "keywords": ["acme"], "entropy": 2, "allowlists": [{"regexes": ["acme=abcd", "b+"]}]}
    )
    assert rule == {
        "keywords": ["acme"],
        "regex": "(?i:(?:acme)=([a-z]{4}))",
        "entropy": 2,
        "allowlists": [{"regexes": ["b+"]}],
    }


@check_rows("path", [RULES, REST])
def test_the_files_name_their_source_and_licence(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["source"].startswith("https://github.com/gitleaks/")
    assert re.fullmatch("[0-9a-f]{40}", data["commit"])
    assert data["licence"] == "MIT"
    assert any("Copyright (c)" in line for line in data["notice"])


def test_no_file_holds_what_its_rules_would_find() -> None:
    rules = json.loads(RULES.read_text(encoding="utf-8"))["rules"]
    assert len(rules) > 200
    commit = re.compile('"commit": "[0-9a-f]{40}"')  # one rule takes any such number for a key
    texts = [commit.sub("", path.read_text(encoding="utf-8")) for path in (RULES, REST)]
    named = [rule for rule in rules if not rule["regex"].startswith("(?i:(?:")]
    assert not [rule["id"] for rule in named for text in texts if re.search(rule["regex"], text, re.ASCII)]
