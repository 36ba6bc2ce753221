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
        ("listens at 10.0.0.5:5432 only", "10.0.0.5", "host"),
        ("connection to db-main.corp.acme.io:5432 lost", "db-main.corp.acme.io", "host"),
        ("listens at localhost:3000 then", "localhost", "host"),
        ("postgres://ann:secret@db.acme.com:5432/x again", "db.acme.com", "host"),
        ("the leak is in libwobble since then", "libwobble", "package"),
        ("    image: wobbledb:8.0", "wobbledb", "product"),
        ("gh repo create acme/wobble-tool --public", "acme/wobble-tool", "product"),
        ("drop support of Node 14 now", "Node", "product"),
        ("wobblefox commented 2 days ago", "wobblefox", "person"),
        ("ask wobblefox for a review", "wobblefox", "person"),
        ("the crate is wobble-wire from now on", "wobble-wire", "package"),
        ("the project is called wobbleton now", "wobbleton", "product"),
        ("fetch https://api.acme.com:8443/v1/users?id=3 daily", "https://api.acme.com:8443/v1/users?id=3", "host"),
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
        ("open postgres://ann:secret@db.acme.com/x now", "db.acme.com", "host"),
        ("(see https://acme.dev/wiki/Memory_(old)), please", "https://acme.dev/wiki/Memory_(old)", "host"),
        ("\u6253\u5f00https://acme.dev/a?b=1\uff0c\u7136\u540e", "https://acme.dev/a?b=1", "host"),
        ("\u7528huodai.acme.com\u7684\u524d\u7f00", "huodai.acme.com", "host"),
        ("\u4fee\u6539src/main.py\u6587\u4ef6", "src/main.py", "file"),
        ("read @README.md first", "README.md", "file"),
        ("look at @apps/api/plans/update.md again", "apps/api/plans/update.md", "file"),
        ("in app/routes/($locale).account_.login.tsx only", "app/routes/($locale).account_.login.tsx", "file"),
        ("the page is app/blog/[slug]/page.tsx now", "app/blog/[slug]/page.tsx", "file"),
        (
            r'play "D:\Music\Sign It - A, B & C vs. D (Mashup).m4a" then',
            r"D:\Music\Sign It - A, B & C vs. D (Mashup).m4a",
            "file",
        ),
        (r"logs are in C:\app\logs since then", r"C:\app\logs", "file"),
        ("decisions are kept in docs/adr for good", "docs/adr", "file"),
        ("all that is in @apps/api/ again", "apps/api/", "file"),
        ("write it under the 'learnings' folder", "learnings", "file"),
        ("w folderze data", "data", "file"),
        ("no '.claude/' was found", ".claude/", "file"),
        ("how to run the specstory CLI daily", "specstory", "package"),
        ("the dates follow RFC 3339 now", "RFC 3339", "concept"),
        ("no 'podfile' was found", "podfile", "file"),
        ("the production namespace is tw-prod now", "tw-prod", "service"),
        ("the realm for staging is called tw-staging", "tw-staging", "service"),
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
        "check @order.booking.guest of the view",
        "thirteen rooms in our case\n6. do not show it",
        "the cross-agent plan",
        "logic of adding/replacing/sorting is kept",
        "if status == 200 or self.app is there",
        "the page /collections/all-products is slow",
        "all *.md and .py are kept, [name].md too",
        "the service is up-to-date and the bucket is read-only",
        "the call returns 200 with an empty body",
        "ask them for a review and ask support for a key",
        "everybody commented on it\nsomebody pushed it too far",
        "a liberal library in the library",
        "\u8bbe\u7f6e@target\u548c@materials\u4e3a\u7a7a",
        "the module is called once and the job was named twice",
        "each Node in the tree",
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert mentions_in(text) == ()


def test_a_very_long_run_is_not_looked_through() -> None:
    assert shapes_in("a/" * LONGEST + "b.py") == []


def test_what_stands_in_an_address_is_not_named_again() -> None:
    found = mentions_in("clone https://github.com/acme/tools/blob/main/setup.py now")
    assert [(mention.name, mention.kind) for mention in found] == [
        ("https://github.com/acme/tools/blob/main/setup.py", "host")
    ]


def test_what_goes_on_behind_an_install_is_no_package() -> None:
    assert [mention.name for mention in mentions_in("npm install took ten minutes")] == ["npm"]
    assert [mention.name for mention in mentions_in("pip install tooky first")] == ["pip", "tooky"]
