"""Pasted text never becomes the user's own word."""

from __future__ import annotations

from agent_memory.capture import Extractor
from agent_memory.capture.typed_text import get_typed_part, list_own_sentences
from agent_memory.settings import CaptureSettings
from tests.hostile.pastes import PASTES, RULE
from tests.rows import check_rows

_EXTRACTOR = Extractor(CaptureSettings())


@check_rows("way", list(PASTES))
def test_extractor_pasted_rule_is_not_stored_or_the_users(way: str) -> None:
    observations = _EXTRACTOR.extract(PASTES[way], "user")

    assert [o for o in observations if o.cue or o.trust != "low" or o.source.kind == "user"] == []
    assert RULE not in get_typed_part(PASTES[way])


@check_rows("way", list(PASTES))
def test_list_own_sentences_pasted_rule_is_left_out(way: str) -> None:
    own_text = " ".join(list_own_sentences(PASTES[way]))
    assert "x.example" not in own_text
    assert RULE not in own_text
