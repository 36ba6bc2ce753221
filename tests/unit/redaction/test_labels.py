"""redact_label: what in a tag, a relation or a name of a session could be a secret, and what is a label."""

from __future__ import annotations

from agent_memory.redaction import SecretRedactor, redact_label, redact_path
from agent_memory.redaction.redactor import RepeatedRedactor
from tests.rows import check_rows

REDACTOR = SecretRedactor()
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@check_rows(
    "label",
    [
        "gh" + "p_" + "ab3de5gh7jk9mn1pq2rs4tu6vw8xy0za",
        "q7rb/habloqslqsbebazj" + "+nxs89lre5hk5cth",
        "mango" + "#fest77",
        "Tr0ub4" + "dor&3",
        "p@ss" + "12",
        "P@ss" + "1111",
        "Aa1!" + "Aa1!",
        "P@s" + "ss1",
        "Qq1" + "1!!",
        "x7Kq2mZ9vB4n" + "W8tR3sL1",
        "key:" + "x7kq2mz9vb4n" + "w8tr3sl1",
    ],
)
def test_a_bare_secret_leaves_no_part_of_itself(label: str) -> None:
    cleaned, kinds = redact_label([label], REDACTOR)
    assert kinds
    assert cleaned == [f"[redacted:{kinds[0]}]"] or label[:8] not in cleaned[0]


@check_rows(
    "label",
    [
        "python3.12", "k8s-v1-29-upgrade", "2026-q3", "release/2026.03", "c++20", "c#12", "sha256", "@bob",
        "eu-west-1", "0;A", "#goals2024", "bob2@example.com", "550e8400-e29b-41d4-a716-446655440000", "x86_64", "p99",
        "3f2a9c81d0b7e6f5a4c3b2d1e0f9a8b7c6d5e4f3", "src/agent_memory/models.py:120", "utf-8", "postgresql16", "größe",
        "要件", "depends_on", "notes from 2026-03-01", "web_fetch", "mem-0123456789ab", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "0000;A", "0000&A", "z0z0z0z0z0", "acme:session-100", "jira:PROJ-1234", "port:8080", "order:48213",
        "train:ICE-571", "acme:550e8400-e29b-41d4-a716-446655440000",
    ],
)  # fmt: skip
def test_a_label_stays_as_it_is(label: str) -> None:
    assert redact_label({"rel": label}, REDACTOR) == ({"rel": label}, ())


def test_a_label_that_has_no_room_for_words_and_a_marker_becomes_the_marker() -> None:
    label = "the deployment token of our build server is " + "gh" + "p_" + "aB3dE5gH7jK9mN1p"
    assert redact_label(label, REDACTOR)[0] == "[redacted:github-token]"


def test_values_that_are_no_text_stay() -> None:
    assert redact_label([None, 7, True], REDACTOR) == ([None, 7, True], ())


def test_a_secret_that_is_a_key_leaves_no_part_of_itself() -> None:
    token = "gh" + "p_" + "ab3de5gh7jk9mn1pq2rs4tu6vw8xy0za"
    cleaned, kinds = redact_label({token: {"inner": [{token: 1}]}}, REDACTOR)
    assert kinds
    assert token not in str(cleaned)


def test_redact_label_repeated_label_gives_same_result() -> None:
    redactor = RepeatedRedactor(SecretRedactor())
    for label in ("kafka", "tr0ub4dor&3x", "kafka", "tr0ub4dor&3x"):
        assert redact_label(label, redactor) == redact_label(label, SecretRedactor())


@check_rows(
    ("path", "clean"),
    [
        ("/tmp/tmpotxqvu5c/Xk29dQ8zLm3Rt7.md", "/tmp/tmpotxqvu5c/Xk29dQ8zLm3Rt7.md"),
        (r"C:\cache\a8f5f167f44f4964e6c998dee827110c\x.md", r"C:\cache\a8f5f167f44f4964e6c998dee827110c\x.md"),
        (f"/tmp/{GITHUB}.md", "/tmp/[redacted:high-entropy]"),
        (f"/tmp/a {GITHUB} b.md", "/tmp/a [redacted:github-token] b.md"),
        ("~/password=hunter2abc/x.md", "~/password=[redacted:password]/x.md"),
    ],
)
def test_path_loses_only_known_and_labelled_secrets(path: str, clean: str) -> None:
    assert redact_path(path, SecretRedactor()).text == clean
