"""Messages between a client and the process that holds a shard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.engines.shard_process import pack_message, unpack_message

JSON = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text()))


@given(JSON, st.binary())
def test_a_message_comes_out_as_it_went_in(head: dict[str, object], body: bytes) -> None:
    assert unpack_message(pack_message(head, body)) == (head, body)


@given(st.binary(max_size=40))
def test_garbage_is_an_error_or_a_mapping(message: bytes) -> None:
    try:
        head, _ = unpack_message(message)
    except ValueError:
        return
    assert isinstance(head, dict)
