"""Stretches that do not overlap."""

from __future__ import annotations

from agent_memory.entities.stretches import Stretches


def test_what_touches_does_not_meet_and_what_shares_a_character_does() -> None:
    taken = Stretches([(5, 8), (0, 2), (6, 9)])
    assert not taken.meet(2, 5)
    assert not taken.meet(8, 9)
    assert taken.meet(7, 20)
    assert taken.meet(0, 100)
    assert not Stretches().meet(0, 9)


def test_a_stretch_is_taken_once() -> None:
    taken = Stretches()
    assert taken.take(4, 6)
    assert not taken.take(5, 7)
    assert taken.take(0, 4)
    assert taken.within(0, 6) == [(0, 4), (4, 6)]
    assert taken.within(1, 6) == [(4, 6)]
