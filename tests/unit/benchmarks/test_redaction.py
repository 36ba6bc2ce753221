"""The benchmark of the redactor measures what it says: planted secrets are there, clean statements hold none."""

from __future__ import annotations

from collections import Counter

from benchmarks._redaction_clean import CLEAN
from benchmarks._redaction_first import FIRST
from benchmarks._redaction_kinds import GROUPS, Planted
from benchmarks._redaction_last import LAST
from benchmarks._redaction_later import LATER, LATER_CLEAN
from benchmarks.redaction import leaks, planted, statements


def test_there_are_enough_kinds_in_every_group() -> None:
    names = Counter((kind.group, kind.name) for kind in (*FIRST, *LATER, *LAST))
    assert len(names) >= 100
    assert set(names.values()) == {1}
    assert {group for group, _ in names} == set(GROUPS)


def test_every_planted_secret_stands_in_its_text() -> None:
    several = [secret for _, secret in planted((*FIRST, *LATER, *LAST), 1, 3)]
    assert len(several) >= 300
    assert not [each for each in several if not each.secrets or any(part not in each.text for part in each.secrets)]


def test_the_same_seed_makes_the_same_and_another_seed_others() -> None:
    assert [*planted(FIRST, 1, 2)] == [*planted(FIRST, 1, 2)] != [*planted(FIRST, 2, 2)]
    assert [*statements(1)] == [*statements(1)] != [*statements(2)]


def test_there_are_enough_clean_statements() -> None:
    assert len([*statements(1)]) == sum(count for count, _ in (CLEAN | LATER_CLEAN).values()) >= 500


def test_a_secret_leaks_if_any_part_is_left() -> None:
    secret = Planted("a one b two", ("one", "two"))
    assert leaks(lambda text: text.replace("one", "[redacted]"), secret)
    assert not leaks(lambda text: text.replace("one", "").replace("two", ""), secret)
