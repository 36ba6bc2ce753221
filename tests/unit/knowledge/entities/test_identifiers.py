"""What is told by form alone, and what only looks like it."""

from __future__ import annotations

from agent_memory.knowledge.entities import find_mentions
from agent_memory.knowledge.entities.name_finder import find_identifiers, is_identifier
from tests.rows import check_rows


@check_rows(
    ("text", "name", "kind"),
    [
        ("see src/app/main.py for it", "src/app/main.py", "file"),
        ("logs are in /var/log/app/today", "/var/log/app/today", "file"),
        ("edit ~/.zshrc first", "~/.zshrc", "file"),
        ("the Dockerfile is old", "Dockerfile", "file"),
        ("open C:\\temp\\report.docx now", "C:\\temp\\report.docx", "file"),
        ("the host db-01.internal is down", "db-01.internal", "host"),
        ("listens at 10.0.0.5:5432 only", "10.0.0.5", "host"),
        ("connection to db-main.corp.acme.io:5432 lost", "db-main.corp.acme.io", "host"),
        ("listens at localhost:3000 then", "localhost", "host"),
        ("postgres://ann:secret@db.acme.com:5432/x again", "db.acme.com", "host"),
        ("fetch https://api.acme.com:8443/v1/users?id=3 daily", "https://api.acme.com:8443/v1/users?id=3", "url"),
        ("pinned orjson==3.10 again", "orjson", "package"),
        ("needs @scope/pkg to build", "@scope/pkg", "package"),
        ("where is order #12345 now", "#12345", "order"),
        ("Order A-10293 was lost", "A-10293", "order"),
        ("ORD-2024-001 is paid", "ORD-2024-001", "order"),
        ("PROJ-123 blocks the release", "PROJ-123", "issue"),
        ("CVE-2024-12345 is mended", "CVE-2024-12345", "issue"),
        ("see pull request 91 for it", "91", "issue"),
        ("mail bob.smith@acme.com about it", "bob.smith@acme.com", "mail"),
        ("ask @priya for it", "@priya", "name"),
        ("open postgres://ann:secret@db.acme.com/x now", "db.acme.com", "host"),
        ("(see https://acme.dev/wiki/Memory_(old)), please", "https://acme.dev/wiki/Memory_(old)", "url"),
        ("\u6253\u5f00https://acme.dev/a?b=1\uff0c\u7136\u540e", "https://acme.dev/a?b=1", "url"),
        ("\u7528huodai.acme.com\u7684\u524d\u7f00", "huodai.acme.com", "host"),
        ("released as v2.3.1 today", "v2.3.1", "version"),
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
        ("the dates follow RFC 3339 now", "RFC 3339", "concept"),
    ],
)
def test_names_are_told_by_their_form(text: str, name: str, kind: str) -> None:
    assert [(mention.name, mention.kind) for mention in find_mentions(text)] == [(name, kind)]


@check_rows(
    "text",
    [
        "the hosts db-orders-1 and db-orders-2",
        "see db-bugs-12",
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
        "restart billing-api, left-pad 1.3.0 and the crate wobble-wire",
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
    assert list(find_identifiers(text)) == []


def test_a_very_long_run_is_not_looked_through() -> None:
    assert list(find_identifiers("a/" * 160 + "b.py")) == []


def test_what_stands_in_an_address_is_not_named_again() -> None:
    found = find_mentions("clone https://github.com/acme/tools/blob/main/setup.py now")
    assert [(mention.name, mention.kind) for mention in found] == [
        ("https://github.com/acme/tools/blob/main/setup.py", "url")
    ]


@check_rows(
    ("name", "is_one"),
    [("src/app/main.py", True), ("PROJ-123", True), ("Kestrel Systems", False), ("the file main.py", False)],
)
def test_is_identifier_whole_name_decides(name: str, *, is_one: bool) -> None:
    assert is_identifier(name) is is_one
