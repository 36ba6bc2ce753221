"""What is told by form alone, and what only looks like it."""

from __future__ import annotations

import pytest

from agent_memory.entities import mentions_in
from agent_memory.entities.shapes import LONGEST, shapes_in


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("see src/app/main.py for it", "src/app/main.py", "file"),
        ("logs are in /var/log/app/today", "/var/log/app/today", "file"),
        ("edit ~/.zshrc first", "~/.zshrc", "file"),
        ("the Dockerfile is old", "Dockerfile", "file"),
        ("open C:\\temp\\report.docx now", "C:\\temp\\report.docx", "file"),
        ("moved to src/models/ today", "src/models/", "file"),
        ("the host db-01.internal is down", "db-01.internal", "host"),
        ("it runs on prod-db-1 alone", "prod-db-1", "host"),
        ("listens at 10.0.0.5:5432 only", "10.0.0.5:5432", "host"),
        ("fetch https://api.acme.com:8443/v1/users?id=3 daily", "api.acme.com:8443", "host"),
        ("brew install -U tenacity first", "tenacity", "package"),
        ("pinned orjson==3.10 again", "orjson", "package"),
        ("left-pad 1.3.0 is unused", "left-pad", "package"),
        ("needs @scope/pkg to build", "@scope/pkg", "package"),
        ("restart billing-api at night", "billing-api", "service"),
        ("where is order #12345 now", "#12345", "order"),
        ("Order A-10293 was lost", "A-10293", "order"),
        ("ORD-2024-001 is paid", "ORD-2024-001", "order"),
        ("Die Bestellung Nr. 4711 fehlt", "4711", "order"),
        ("\u8ba2\u5355\u53f7 88213 \u5df2\u53d1\u8d27", "88213", "order"),
        ("PROJ-123 blocks the release", "PROJ-123", "issue"),
        ("CVE-2024-12345 is mended", "CVE-2024-12345", "issue"),
        ("see pull request 91 for it", "91", "issue"),
        ("mail bob.smith@acme.com about it", "bob.smith@acme.com", "other"),
        ("ask @priya for it", "@priya", "person"),
        ("kept in the bucket blue-prod-eu for a year", "blue-prod-eu", "service"),
        ("the rate-limiter library is old", "rate-limiter", "package"),
        ("moved to Fly.io yesterday", "Fly.io", "product"),
    ],
)
def test_names_are_told_by_their_form(text: str, name: str, kind: str) -> None:
    assert [(mention.name, mention.kind) for mention in mentions_in(text)] == [(name, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "use UTF-8 and CRC-32, as DIN-5008 says",
        "and/or, he/she, TCP/IP and 1/2 of 3.5",
        "call GET /api/v1/users twice",
        "a co-worker asked for self-service",
        "order 12 cakes for the case of 5% loss",
        "version 2.0.1 came out at 10:30, e.g. with 3.14",
        "log_level=debug in the environment",
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert mentions_in(text) == ()


def test_a_very_long_run_is_not_looked_through() -> None:
    assert shapes_in("a/" * LONGEST + "b.py") == []


def test_what_stands_in_an_address_is_not_named_again() -> None:
    found = mentions_in("clone https://github.com/acme/tools/blob/main/setup.py now")
    assert [(mention.name, mention.kind) for mention in found] == [("github.com", "host")]
