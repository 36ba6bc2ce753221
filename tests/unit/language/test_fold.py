"""Fold of a text."""

import hashlib

from agent_memory.language.words import fold
from agent_memory.models import content_hash
from tests.rows import check_rows


@check_rows("text", ["Tea with Milk", " tea\nwith  MILK\t", "\uff34\uff25\uff21 with milk"])
def test_fold_without_case_width_and_spaces_is_equal(text: str) -> None:
    assert fold(text) == "tea with milk"


@check_rows("text", ["té", "tea-with-milk", "tee"])
def test_fold_of_other_letters_differs(text: str) -> None:
    assert fold(text) != fold("te")


def test_fold_of_stored_hashes_is_unchanged() -> None:
    text = "Straße ﬁ ⁵ İ Ⅷ\u00a0é"
    assert fold(text) == "strasse fi 5 i̇ viii é"
    assert content_hash(text) == hashlib.sha256(fold(text).encode()).hexdigest()
