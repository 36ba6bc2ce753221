"""The benchmark of the redactor measures what it says: planted secrets are there, clean statements hold none."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.secrets.benchmark import SETS, leaks, main, planted, statements
from benchmarks.secrets.clean import CLEAN
from benchmarks.secrets.control_kinds import LAST
from benchmarks.secrets.frames import GROUPS, Planted
from benchmarks.secrets.harmless import HARMLESS
from benchmarks.secrets.held_out_kinds import UNMET
from benchmarks.secrets.language_kinds import LANGUAGES, NEWEST
from benchmarks.secrets.peers import gitleaks
from benchmarks.secrets.statement_kinds import LATER, LATER_CLEAN
from benchmarks.secrets.tuning_kinds import FIRST
from benchmarks.secrets.unlabelled_kinds import FRESH

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ALL = (*FIRST, *LATER, *LAST, *NEWEST, *FRESH, *UNMET)
TOKEN = "gh" + "p_" + "x7Kq2mZ9" * 4 + "aB3d"


def test_there_are_enough_kinds_in_every_group() -> None:
    names = {(kind.group, kind.name) for kind in ALL}
    assert len(names) >= 600
    for lot in SETS.values():
        assert lot is SETS["all"] or set(Counter((kind.group, kind.name) for kind in lot).values()) == {1}
    assert {group for group, _ in names} == set(GROUPS)


def test_every_planted_secret_stands_in_its_text() -> None:
    several = [secret for _, secret in planted(ALL, 1, 3)]
    assert len(several) >= 1200
    assert not [each for each in several if not each.secrets or any(part not in each.text for part in each.secrets)]


def test_the_same_seed_makes_the_same_and_another_seed_others() -> None:
    assert [*planted(FIRST, 1, 2)] == [*planted(FIRST, 1, 2)] != [*planted(FIRST, 2, 2)]
    assert [*statements(1)] == [*statements(1)] != [*statements(2)]


def test_there_are_enough_clean_statements() -> None:
    assert len([*statements(1)]) == sum(count for count, _ in (CLEAN | LATER_CLEAN | HARMLESS).values()) >= 1200


def test_a_label_in_each_of_17_languages_stands_before_after_and_above_the_value() -> None:
    assert len(LANGUAGES) == 17
    for before, after, above in LANGUAGES.values():
        assert not before.startswith("{S}")
        assert after.startswith("{S}")
        assert above.endswith("\n{S}")


def test_half_of_a_secret_in_one_piece_is_a_leak_and_less_is_none() -> None:
    secret = Planted("key abcdefghijklmnop", ("abcdefghijklmnop",))
    assert leaks(lambda text: text.replace("abcdefgh", ""), secret)
    assert not leaks(lambda text: text.replace("efghijkl", ""), secret)


def test_gitleaks_rules_find_a_token_also_in_base64_hex_and_percent_and_leave_prose() -> None:
    assert gitleaks(f"we use {TOKEN} now") == "we use [redacted] now"
    for line in (b64encode(TOKEN.encode()).decode(), TOKEN.encode().hex(), "%67%68" + TOKEN[2:]):
        assert line not in gitleaks(f"we use {line} now")
    assert gitleaks("the password is in the vault") == "the password is in the vault"


def test_gitleaks_generic_rule_heeds_entropy_and_stop_words() -> None:
    value = "x7Kq2mZ9" + "pL4vR8wT"
    assert value not in gitleaks(f"api_key = {value}")
    assert "aaaaaaaaaaaaaa" in gitleaks("api_key = aaaaaaaaaaaaaa")
    assert f"{value}example" in gitleaks(f"api_key = {value}example")


def test_a_file_is_measured_by_its_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"text": f"use {TOKEN}", "secrets": [TOKEN], "group": "tokens", "label": "GitHub"},
        {"text": "our horse is called Mango", "secrets": ["Mango"], "group": "names", "label": "horse"},
        {"text": "lunch is at noon"},
    ]
    data, output = tmp_path / "data.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["secrets", "--data", str(data), "--without-rivals", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    ours = json.loads(output.read_text())["agent-memory"]
    assert ours["leaks"]["data"]["groups"] == {"names": "1/1", "tokens": "0/1"}
    assert (ours["leaks"]["data"]["mean"], ours["leaks"]["data"]["worst"]) == (0.5, "names")
    assert ours["clean"] == {"statements": 1, "classes": {"clean": "0/1"}, "touched": 0.0}
    assert "| names | 1/1 |" in capsys.readouterr().out


def test_a_secret_leaks_if_any_part_is_left() -> None:
    secret = Planted("a one b two", ("one", "two"))
    assert leaks(lambda text: text.replace("one", "[redacted]"), secret)
    assert not leaks(lambda text: text.replace("one", "").replace("two", ""), secret)
