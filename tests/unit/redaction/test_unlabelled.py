"""Secrets without a label: by how they look alone, or with a word in the same line."""

from __future__ import annotations

from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.unlabelled import SecretLevel, judge_token
from tests.rows import check_rows

REDACTOR = SecretRedactor()
GENERATED = "q7Vt2mX9" + "bK4dR8sW1zLp"
LOWER = "k7q2mz9x" + "4t1vb8w3hd6r5fj0"
HEX = "3afd0905" * 4
MIXED = "Pebble%78" + "rT"


@check_rows(
    ("token", "looks"),
    [
        (GENERATED, SecretLevel.SURE),
        (LOWER, SecretLevel.SURE),
        (MIXED, SecretLevel.SURE),
        ("test_" + HEX, SecretLevel.SURE),
        (GENERATED[:14], SecretLevel.LIKELY),
        ("DuneWinter" + "7191", SecretLevel.SURE),
        ("quartz" + "4282", SecretLevel.PERHAPS),
        ("Copper-" + "5935", SecretLevel.PERHAPS),
        (HEX, SecretLevel.NAMED),
        ("dd96c279-af4c-41a8-ac48-7c79f19145c0", SecretLevel.NAMED),
    ],
)
def test_a_token_looks_like_a_secret(token: str, looks: SecretLevel) -> None:
    assert judge_token(token) is looks


@check_rows(
    "token",
    [
        *(
            "PostgreSQL16",
            "Windows11",
            "PBKDF2WithHmacSHA256",
            "PROJ-1234",
            "v2.11.0-rc1",
            "2026-03-01",
            "getUserV3Async",
        ),
        *(
            "lodash@4.17.21",
            "bob@example.org",
            "issue#12",
            "Ctrl+Shift+F5",
            "AAAAC3NzaC1lZDI1NTE5AAAAI1OH4NADjyY3QfZn",
        ),
        *("report_20260301.pdf", "cus_NffrFeUfNV2Hib", "#b00020", "web-7d4f8b9c6-x2x9z", "Sprint2026", "deadbeef1234"),
    ],
)
def test_names_of_other_things_look_like_none(token: str) -> None:
    assert judge_token(token) is SecretLevel.HARMLESS


@check_rows(
    "text",
    [
        f"it is {MIXED} for the one in the hall",
        f"we send {GENERATED} with each call",
        "wifi: rocket / Falcon@" + "4563",
        "Vi0Let@" + "473 yeni şifremiz",
        "quartz" + "4282 가 비밀번호입니다",
        "smbclient //nas/x Winter-" + "3579 -U nectar",
        f"bugsnag key {HEX}",
        "hubspot key dd96c279-af4c-41a8-ac48-7c79f19145c0",
        "expect login, send DuneWinter" + "7191\\r",
        "aws_secret_access_key = q7Vt2mX9bK4d\n    R8sW/zLpq7Vt2m+9bK4d",
    ],
)
def test_it_is_taken_out(text: str) -> None:
    found = REDACTOR.redact(text)
    assert found.kinds
    assert not any(part in found.text for part in ("4563", "473", "4282", "3579", "7191", HEX, "af4c", "R8sW", MIXED))


@check_rows(
    "text",
    [
        f"commit {HEX}{HEX[:8]} rotates the api key",
        f"the cache key is {HEX}",
        "request dd96c279-af4c-41a8-ac48-7c79f19145c0 failed, token expired",
        "see src/q7Vt2mX9bK4dR8sW1zLp/index.js",
        "user mango1234 reset the password",
        "Log in with the account that was made for Ubuntu24",
        "https://docs.example.org/d/" + GENERATED + "/edit",
    ],
)
def test_it_stays(text: str) -> None:
    assert REDACTOR.redact(text).text == text


def test_a_link_that_opens_something_is_a_secret() -> None:
    text = REDACTOR.redact(f"https://shop.example/invite/{GENERATED}").text
    assert text == "https://shop.example/invite/[redacted:url-token]"


@check_rows("digits", ["²³", "①②"])
def test_unusual_digits_are_judged_as_plain_ones(digits: str) -> None:
    for form in ("Hello{}World", "helloworld{}", "abcdefgh{}"):
        assert judge_token(form.format(digits)) is judge_token(form.format("47"))
