"""What a text says once lookalikes, escapes and encodings are undone, and where each part of it came from."""

from __future__ import annotations

import base64
import gzip

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.encodings import DecodedText, iter_decoded_regions, iter_encoded_parts
from tests.rows import check_rows


def decode(text: str) -> DecodedText | None:
    """Return a short text in plain letters, None if nothing in it is encoded."""
    return next((view for _, _, _, view in iter_decoded_regions(text)), None)


@check_rows(
    ("text", "plain"),
    [
        ("p\u0430ss\u200bword", "password"),
        ("\uff50\uff57 = x", "pw = x"),
        ("%70%61ss", "pass"),
        ("\\u0070\\x61ss\\n", "pass\n"),
        ("a&colon;&#98;", "a:b"),
        ("p.a.s.s.w.o.r.d", "password"),
        ('"ghp_" + "abc"', '"ghp_abc"'),
        ("\U0001d429\U0001d41a\U0001d42c\U0001d42c", "pass"),
        ("lo\u0308sen", "l\u00f6sen"),
    ],
)
def test_a_decoded_text_says_what_is_meant(text: str, plain: str) -> None:
    view = decode(text)
    assert view is not None
    assert view.text == plain
    assert view.get_span(0, len(plain)) == (0, len(text))


@check_rows(
    "text",
    [
        "plain words",
        "\u0441\u043e\u0441\u043d\u0430 \u0438 \u043c\u043e\u0445",
        "gr\u00f6\u00dfe",
        "\u5bc6\u7801",
        "100 % sure",
        "e.g. a b",
    ],
)
def test_a_text_without_anything_to_decode_is_not_looked_at_twice(text: str) -> None:
    assert decode(text) is None


@given(st.text(alphabet="ab%41\\u0061x&#;=3D \u0430\u200b\uff50\ud800\u0308.'\"+\n", max_size=60))
def test_every_letter_has_its_place_in_the_original(text: str) -> None:
    view = decode(text)
    if view is not None:
        assert len(view.places) == len(view.text) + 1
        assert view.places == sorted(view.places)
        assert view.places[-1] == len(text)


@check_rows(
    "encoded",
    [base64.b64encode(b"user=bob&lang=en").decode(), b"user=bob&lang=en".hex(), "0x" + b"user=bob&lang=en".hex()],
)
def test_an_encoded_part_is_read_where_it_stands(encoded: str) -> None:
    assert list(iter_encoded_parts(f"see {encoded} there")) == [(4, 4 + len(encoded), "user=bob&lang=en")]


@check_rows("text", ["getUserAccountSettingsById", "9f86d081884c7d659a2feaa0c55ad015", "a/very/long/path/of/words"])
def test_what_decodes_to_no_text_is_left(text: str) -> None:
    assert not list(iter_encoded_parts(text))


def test_what_is_compressed_within_base64_is_read() -> None:
    line = base64.b64encode(gzip.compress(b"password=Winter%4711", mtime=0)).decode()
    assert SecretRedactor().redact(f"gzip+base64: {line}").text == "gzip+base64: [redacted:password]"


@check_rows(
    "text",
    [
        "spelled: " + " ".join("gh" + "p_" + "aB3dE5gH" * 4 + "jK9m"),
        "the password, letter by letter: " + " ".join("Island8006"),
        "in groups: gh" + "p_ aB3d E5gH aB3d E5gH aB3d E5gH aB3d E5gH jK9m",
        "String.fromCharCode(" + ",".join(str(ord(letter)) for letter in "password=Winter%4711") + ")",
        "stored as " + base64.b32encode(b"password=Winter%4711").decode(),
        "powershell -EncodedCommand " + base64.b64encode("$password = 'Winter%4711'".encode("utf-16-le")).decode(),
        "Basic header of " + base64.b64encode(b"admin:H@Rb0R.5823").decode(),
    ],
)
def test_other_ways_of_writing_a_secret_are_read(text: str) -> None:
    assert SecretRedactor().redact(text).kinds


@check_rows("text", ["a b c d e f g", "this that then when what with", "10,20,30,40,50,60,70,80,90"])
def test_single_letters_short_words_and_numbers_stay(text: str) -> None:
    assert SecretRedactor().redact(text).text == text


def test_decoded_regions_far_text_is_left_out() -> None:
    text = "plain words. " * 4_000 + "pass\u200bword: hunter2hunter9 " + "more words. " * 4_000
    ((begin, first, last, view),) = iter_decoded_regions(text)
    place = text.index("\u200b")
    assert first < place < last
    assert begin < first
    assert len(view.text) < 20_000
    assert SecretRedactor().redact(text).kinds == SecretRedactor().redact(text[place - 40 : place + 40]).kinds != ()


def test_decoded_regions_whole_short_text() -> None:
    ((begin, _, _, view),) = iter_decoded_regions("pass\u200bword is set, and r\u00e9sum\u00e9 &amp; more")
    assert begin == 0
    assert view.text == "password is set, and r\u00e9sum\u00e9 & more"
