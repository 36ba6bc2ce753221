"""Secrets that the form around them gives away: locks, options of commands, properties, links between words."""

from __future__ import annotations

import pytest

from agent_memory.redaction import SecretRedactor

REDACTOR = SecretRedactor()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("front door: 1603#", "1603"),
        ("the gate opens with 7067#", "7067"),
        ("my phone unlocks with 903482", "903482"),
        ("the code for the front door is 8051", "8051"),
        ("G-357385 is your Google code", "357385"),
        ("<key>apiToken</key><string>dragon+marble2549</string>", "marble2549"),
        ("requests.get(url, auth=('ann', 'lantern_nectar4618'))", "nectar4618"),
        ("ipmitool -H 10.0.0.6 -U ADMIN -P pepper479? power status", "pepper479"),
        ("echo pebble&willow5821 | kinit island@CORP.LOCAL", "willow5821"),
        ("xfreerdp /v:10.0.0.5 /u:ann /p:wIHMYBf7gkZb7849", "gkZb7849"),
        ("setup key: uvbp aahv mtzv ragl utgb vyuo qqzz abwp", "ragl utgb"),
        ("product key is EDIE8-1L1ZI-38Q0F-CM62F-4SO92", "38Q0F"),
        ("hasło to qirzjmdboe", "qirzjmdboe"),
        ("changed the root password to odbmacxqaw", "odbmacxqaw"),
        ("the passphrase is forest-meadow-velvet-magnet", "velvet"),
        ("the master password is Dragon Zephyr Garnet Olive", "Garnet"),
        ("passwords: db WillowQuartz3951, web magnet.breeze1491", "breeze1491"),
        ("// password:\n// dragon_velvet8338", "velvet8338"),
        ("GarnetBreeze2732\n^ that's the db password", "2732"),
        ("pa55word = hazel@pepper1694", "pepper1694"),
        ("MAILPW=harbor6168", "harbor6168"),
    ],
)
def test_it_is_taken_out(text: str, secret: str) -> None:
    assert secret not in REDACTOR.redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "The door opens at 0800 and closes at 1900.",
        "docker run -p 8080:80 nginx",
        "Citation key vaswani2017attention and devlin2019bert.",
        "recovery='Give the key that this memory was encrypted with, and start the command again, please.'",
        "| the briefing with 500 tokens | .06 |\n| 2,000 tokens | .03 |",
        "The password in it is shown nowhere.",
        'if key == "properties": return',
        "secret = await service.keep(text)",
        "vectors of local:all-MiniLM-L6-v2, about mem-a3f2c1b4e5d6 of the account",
        '$password = "[redacted:password]"',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTOR.redact(text).text == text
