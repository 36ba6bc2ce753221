"""Lists of codes, and numbers of persons."""

from __future__ import annotations

from agent_memory.redaction import SecretRedactor
from tests.rows import check_rows

REDACTOR = SecretRedactor()


@check_rows(
    ("text", "codes"),
    [
        ("2FA recovery codes: [64701798, 68988640, 86989233]", ["64701798", "68988640", "86989233"]),
        ("Recovery codes\n0fl2t-49h01  k1ygo-z0ebg\nabcde-fghij", ["0fl2t-49h01", "k1ygo-z0ebg", "abcde-fghij"]),
        ("Wiederherstellungscodes: 6301 6577, 2065 1176", ["6577", "2065", "1176"]),
        ("backup codes:\n1. 4821 9930\n2. 7755 1206", ["4821", "9930", "7755", "1206"]),
        ("códigos de recuperación: 48219930 y 77551206", ["48219930", "77551206"]),
    ],
)
def test_each_code_of_a_list_is_taken_out(text: str, codes: list[str]) -> None:
    left = REDACTOR.redact(text).text
    assert not [code for code in codes if code in left]


@check_rows(
    ("text", "number"),
    [
        ("her number is 219-09-9" + "123", "219-09-9" + "123"),
        ("my TIN is 4226" + "2609679", "42262609679"),
        ("NI number QQ 76 22 75 C", "76 22 75"),
        ("driving licence no K2079" + "239", "K2079239"),
        ("CPF 529.982.247-" + "25", "529.982.247-25"),
        ("numéro de sécurité sociale : 2 94 03 75 120 005 22", "75 120 005"),
        ("pay with 5555 5555 5555 4444 12/29", "5555 5555 5555 4444"),
    ],
)
def test_numbers_of_persons_are_taken_out(text: str, number: str) -> None:
    assert number not in REDACTOR.redact(text).text


@check_rows(
    "text",
    [
        "the recovery codes were printed in 2024",
        "Two of the recovery codes were used; print new ones.",
        "account number range 1000-4442",
        "call 415-555-0123 about the backup codes",
        "passport control opens at 08:30",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert REDACTOR.redact(text).text == text
