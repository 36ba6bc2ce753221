"""The benchmark of the redactor measures what it says: planted secrets are there, clean statements hold none."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.secrets.benchmark import leaks, main
from benchmarks.secrets.kinds import GROUPS, SETS, PlantedSecret, plant
from benchmarks.secrets.peers import gitleaks
from benchmarks.secrets.statements import CLASSES, make_statements

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOKEN = "gh" + "p_" + "x7Kq2mZ9" * 4 + "aB3d"


def test_kinds_of_all_sets_are_many_in_every_group() -> None:
    names = {(kind.group, kind.name) for kind in SETS["all"]}
    assert len(names) >= 600
    for kinds in SETS.values():
        assert kinds is SETS["all"] or set(Counter((kind.group, kind.name) for kind in kinds).values()) == {1}
    assert {group for group, _ in names} == set(GROUPS)


def test_plant_every_kind_puts_its_secrets_into_the_text() -> None:
    secrets = [secret for _, secret in plant(SETS["all"], 1, 3)]
    assert len(secrets) >= 1200
    assert not [
        secret for secret in secrets if not secret.secrets or any(part not in secret.text for part in secret.secrets)
    ]


def test_plant_same_seed_returns_same_texts() -> None:
    first = SETS["first"]
    assert [*plant(first, 1, 2)] == [*plant(first, 1, 2)] != [*plant(first, 2, 2)]
    assert [*make_statements(1)] == [*make_statements(1)] != [*make_statements(2)]


def test_statements_of_a_run_are_many() -> None:
    assert len([*make_statements(1)]) == sum(count for count, _ in CLASSES.values()) >= 1200


def test_labels_of_17_languages_are_before_after_and_above_the_value() -> None:
    kinds = [kind for kind in SETS["newest"] if kind.group == "passwords, strong"]
    frames = {kind.name: kind.row["frames"][0] for kind in kinds if "frames" in kind.row}
    languages = [name.removesuffix(", line before") for name in frames if name.endswith(", line before")]
    assert len(languages) == 17
    for language in languages:
        assert not frames[f"{language}, before"].startswith("{S}")
        assert frames[f"{language}, after"].startswith("{S}")
        assert frames[f"{language}, line before"].endswith("\n{S}")


def test_leaks_half_of_a_secret_in_one_piece_counts() -> None:
    secret = PlantedSecret("key abcdefghijklmnop", ("abcdefghijklmnop",))
    assert leaks(lambda text: text.replace("abcdefgh", ""), secret)
    assert not leaks(lambda text: text.replace("efghijkl", ""), secret)


def test_gitleaks_encoded_tokens_are_found_prose_is_left() -> None:
    assert gitleaks(f"we use {TOKEN} now") == "we use [redacted] now"
    for line in (b64encode(TOKEN.encode()).decode(), TOKEN.encode().hex(), "%67%68" + TOKEN[2:]):
        assert line not in gitleaks(f"we use {line} now")
    assert gitleaks("the password is in the vault") == "the password is in the vault"


def test_gitleaks_generic_rule_needs_entropy_and_no_stop_word() -> None:
    value = "x7Kq2mZ9" + "pL4vR8wT"
    assert value not in gitleaks(f"api_key = {value}")
    assert "aaaaaaaaaaaaaa" in gitleaks("api_key = aaaaaaaaaaaaaa")
    assert f"{value}example" in gitleaks(f"api_key = {value}example")


def test_main_data_file_is_measured_by_its_groups(
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


def test_leaks_any_part_left_counts() -> None:
    secret = PlantedSecret("a one b two", ("one", "two"))
    assert leaks(lambda text: text.replace("one", "[redacted]"), secret)
    assert not leaks(lambda text: text.replace("one", "").replace("two", ""), secret)
