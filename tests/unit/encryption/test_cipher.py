"""The cipher: what is encrypted is read in its own place, by its own key, and nowhere else."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.encryption import DataKey
from agent_memory.encryption.cipher import MAGIC
from tests.rows import check_rows

SECRET: Final = bytes(range(32))
WHERE: Final = ("memory", "mem-0123456789ab", "put", 7)
TEXT: Final = b'{"content": "the harbour opens at nine"}'

places = st.tuples(
    st.sampled_from(["memory", "topic"]), st.sampled_from(["mem-a", "mem-b"]), st.sampled_from(["put", "patch"]),
    st.integers(1, 3),
)  # fmt: skip


def key() -> DataKey:
    return DataKey(SECRET, "bob")


@given(places, st.binary(max_size=500))
def test_what_is_encrypted_is_read_again(where: tuple[object, ...], fields: bytes) -> None:
    assert key().decode(where, key().encode(where, fields)) == fields


@given(places, places, st.binary(min_size=1, max_size=50))
def test_what_stands_in_another_place_is_refused(
    where: tuple[object, ...], other: tuple[object, ...], fields: bytes
) -> None:
    text = key().encode(where, fields)
    if other == where:
        assert key().decode(other, text) == fields
        return
    with pytest.raises(ValueError, match="cannot be decrypted"):
        key().decode(other, text)


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_is_noticed(at: int, change: int) -> None:
    content = bytearray(key().encrypt(WHERE, TEXT))
    content[at % len(content)] ^= change
    with pytest.raises(ValueError, match="cannot be decrypted"):
        key().decrypt(WHERE, bytes(content))


@check_rows("content", [b"", b"short", bytes(12), bytes(27)])
def test_what_is_too_short_is_noticed(content: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be decrypted"):
        key().decrypt(WHERE, content)


def test_the_same_text_never_looks_the_same() -> None:
    assert len({key().encode(WHERE, TEXT) for _ in range(50)}) == 50


def test_another_key_and_another_agent_read_nothing() -> None:
    text = key().encode(WHERE, TEXT)
    for other in (DataKey(os.urandom(32), "bob"), DataKey(SECRET, "ann")):
        with pytest.raises(ValueError, match="cannot be decrypted"):
            other.decode(WHERE, text)


def test_what_is_no_base64_is_refused() -> None:
    with pytest.raises(ValueError, match="not base64"):
        key().decode(WHERE, "?!")


def test_its_name_tells_two_keys_apart_and_nothing_of_the_key() -> None:
    other = DataKey(os.urandom(32), "bob")
    assert key().key == key().key != other.key
    assert key().key not in SECRET.hex()


def test_a_file_is_bound_to_its_name() -> None:
    content = key().encrypt_file("shortlist.json", TEXT)
    assert content.startswith(MAGIC)
    assert TEXT not in content
    assert key().decrypt_file("shortlist.json", content) == TEXT
    with pytest.raises(ValueError, match="cannot be decrypted"):
        key().decrypt_file("other.json", content)
    with pytest.raises(ValueError, match="not encrypted"):
        key().decrypt_file("shortlist.json", TEXT)


def test_hashes_are_keyed() -> None:
    assert key().hash_content(TEXT) == key().hash_content(TEXT) != DataKey(os.urandom(32), "bob").hash_content(TEXT)
