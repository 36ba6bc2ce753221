"""What looks like a name and is none: parts of programs and pages, common nouns, sentences in other languages."""

from __future__ import annotations

import pytest

from agent_memory.entities import mentions_in


def names(text: str) -> list[str]:
    return [mention.name for mention in mentions_in(text)]


@pytest.mark.parametrize(
    "text",
    [
        "InvoiceListView made one query per line",
        "it was converted twice in EtaSerializer and OrderController",
        "Partners must send the header Idempotency-Key or X-Request-Id",
        "as in the Backend Modules section of it",
        "# Plan\n\n- **Carrier** plan\n- Timestamp with offset\n| Purpose | Severity |",
        "### 3. **Configuration**\n\n- \u2705 Standup is done",
        "El resumen:\n- **NUEVA ESTRUCTURA DE COLUMNAS** en la vista",
        "call it with `@target` only",
        "the ShipmentStateMachine and a DockCalendar of ours",
        "bad call in Cozy.Sales.Payment and Expr::Deref",
        "adjust the isSlice and fxMag of it",
        "Carrier calls now time out after 10 seconds",
        "Standup moved to 10:15",
        "The form says:\n\n    Key is invalid",
        "Make it global instead of unique per guild",
        "same mistake is in SettingsFragment",
        "our convention is: hooks start with use_, providers end so",
        "flat at 6.9. lr too high?",
        "keep it for now, revisit after GA.",
        "for this, - Initialize a bare repository",
        "set PRAGMA journal_mode=WAL there",
        "ask finance about the VAT ids for the Swiss entity",
        "write British English in all strings",
        "the provider SPI has no limit",
        "\u30bf\u30a4\u30e0\u30be\u30fc\u30f3\u304c\u305a\u308c\u308b",
    ],
)
def test_code_pages_and_common_nouns_name_nobody(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Postgres 40P01 deadlock in it", ["Postgres"]),
        ("There are three tiers: Harbour, Coast and Ocean.", ["Harbour", "Coast", "Ocean"]),
        ("What is the quota on the Gemini API?", ["Gemini"]),
        ('He said "Mara" or "Jonas".', ["Mara", "Jonas"]),
        ("Mara asked. Then Mara left.", ["Mara", "Mara"]),
        ("We moved to GlitchTip and MapLibre", ["GlitchTip", "MapLibre"]),
    ],
)
def test_names_beside_them_are_kept(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sprawd\u017a status pami\u0119ci i dodaj do docker", ["docker"]),
        ("ukazuje mi to \u017ee horn\u00ed padding m\u00e1 16 a doln\u00ed nic", []),
        ("hledat bude v druh\u00e9 \u0159ad\u011b v navbaru", []),
        ("\u0412\u0437\u0433\u043b\u044f\u043d\u0438 \u043d\u0430 \u0432\u0441\u0435", []),
        ("\u042f \u0441\u043f\u0440\u043e\u0441\u0438\u043b \u0418\u0432\u0430\u043d\u0430 \u043f\u0440\u043e qdrant",
         ["\u0418\u0432\u0430\u043d\u0430", "qdrant"]),
        ("wczoraj nie by\u0142o ju\u017c Tomasza", ["Tomasza"]),
    ],
)  # fmt: skip
def test_other_languages_are_not_read_as_english(text: str, expected: list[str]) -> None:
    assert names(text) == expected
