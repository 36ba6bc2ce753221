"""`RecencyIndex`: the scratchpad is the same whether it is chosen from all memories or from the most recent ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.models import Memory
from agent_memory.scratchpad import Selection
from agent_memory.store.lookups import RecencyIndex

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = Selection(size=4, promotion_threshold=3)
moments = st.integers(-3, 3).map(lambda days: NOON + timedelta(days=days))
fields = st.fixed_dictionaries(
    {"timestamp": moments},
    optional={
        "pinned": st.booleans(),
        "trust": st.sampled_from(["high", "low"]),
        "promoted_at": moments,
        "evicted_at": moments,
        "last_accessed": moments,
        "access_count": st.integers(0, 5),
    },
)
changes = st.lists(st.tuples(st.integers(0, 7), st.none() | fields), min_size=1, max_size=6)


@given(st.lists(changes, min_size=1, max_size=8))
def test_after_any_changes_the_most_recent_ones_are_enough_to_choose_from(rounds: list) -> None:  # type: ignore[type-arg]
    order, known = RecencyIndex(ORDER), {}
    for each in rounds:
        changed = {}
        for number, values in each:
            name = f"mem-{number:012x}"
            memory = None if values is None else Memory(agent_id="bob", id=name, content="tea", **values)
            changed[name] = memory
        for name, memory in changed.items():  # a dict keeps the order of hearing of them, too
            if memory is None:
                known.pop(name, None)
            else:
                known[name] = memory
        order.note(changed)
        chosen = order.choose(lambda one: ORDER.admits(known[one]))
        few = ORDER.choose(known[one] for one in chosen)
        assert few == ORDER.choose(known.values())


def test_of_equal_moments_the_one_heard_of_later_comes_first_and_keeps_its_place_when_it_changes() -> None:
    order = RecencyIndex(Selection(size=1, promotion_threshold=3))
    first, second = (Memory(agent_id="bob", content=text, timestamp=NOON) for text in ("first", "second"))
    order.note({first.id: first, second.id: second})
    assert order.choose(lambda _: True) == [second.id]
    order.note({first.id: first.model_copy(update={"content": "changed"})})
    assert order.choose(lambda _: True) == [second.id]
    order.note({second.id: None})
    assert order.choose(lambda _: True) == [first.id]
