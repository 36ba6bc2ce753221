"""Rules that others keep find what they name, and heed their own entropy and lists."""

from __future__ import annotations

import time

from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.providers import DATA, find_published
from tests.rows import check_rows

HEX = "8f3a1c9e7b2d4f60"


def found(text: str) -> list[str]:
    return [text[finding.start : finding.end] for finding in find_published(text)]


@check_rows(
    "secret",
    [
        "pnu" + "_" + "a1b2c3d4e5f6" * 3,
        "xkeysib" + "-" + HEX * 4 + "-" + "a1b2c3d4e5f6g7h8",
        "FLWSECK" + "_TEST-" + "a1b2c3d4e5f6",
        "dt0c01" + "." + "A1B2C3D4E5F6G7H8J9K0L1M2" + "." + "Q1W2E3R4T5Y6U7I8" * 4,
        "CLOJARS" + "_" + "a1b2c3d4e5f6" * 5,
    ],
)
def test_a_token_is_known_by_its_prefix(secret: str) -> None:
    assert secret in " ".join(found(f"we deploy with {secret} since March"))
    assert secret not in SecretRedactor().redact(f"we deploy with {secret} since March").text


def test_a_key_is_known_by_its_provider_and_a_sign() -> None:
    key = "a1b2c3d4e5f6" * 2
    assert found(f"etsy_key = {key}") == [key]
    assert found(f"etsy has {key} shops") == []


def test_what_repeats_itself_or_is_allowed_is_no_secret() -> None:
    assert found("pnu" + "_" + "a" * 36) == []
    assert found("AKIA" + "IOSFODNN7EXAMPLE") == []


def test_a_commit_is_none_where_sourcegraph_is_spoken_of() -> None:
    assert found(f"sourcegraph indexes {HEX}{HEX}{HEX[:8]} now") == []


def test_every_rule_has_a_keyword_and_a_text_of_all_keywords_costs_linear_work() -> None:
    assert all(rule["keywords"] for rule in DATA["rules"])
    words = " ".join(keyword for rule in DATA["rules"] for keyword in rule["keywords"])
    texts = [(words * 40)[:size] for size in (4_000, 40_000)]
    [*find_published(words)]  # compiles the patterns
    assert any(_cost(texts[1]) <= 30 * max(_cost(texts[0]), 0.001) for _ in range(5))


def _cost(text: str) -> float:
    started = time.process_time()
    [*find_published(text)]
    return time.process_time() - started
