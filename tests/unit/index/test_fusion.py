"""The arithmetic of a ranking stays within its bounds and moves the right way."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ConfigurationError
from agent_memory.index import RankingSettings, fusion
from agent_memory.index.fusion import RankEvidence, TalkEvidence
from tests.rows import check_rows

SHARE = st.floats(0, 1)
DAY = 86_400.0


def test_freshness_falls_from_one_to_the_floor() -> None:
    settings = RankingSettings(freshness_floor=0.4)
    values = [fusion.freshness(days * DAY, settings) for days in (0, 1, 10, 1000, 10**9)]
    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(0.4)


def test_floor_zero_is_the_formula_of_the_seed() -> None:
    assert fusion.freshness(10 * DAY, RankingSettings(freshness_floor=0.0)) == pytest.approx(1 / (1 + 0.1 * 10))


def test_the_future_counts_as_now() -> None:
    assert fusion.freshness(-5 * DAY, RankingSettings()) == 1


def test_access_grows_up_to_its_cap() -> None:
    settings = RankingSettings(access_boost_rate=0.05, access_cap=10)
    assert [fusion.access(count, settings) for count in (0, 2, 10, 500)] == pytest.approx([1, 1.1, 1.5, 1.5])


@given(st.builds(TalkEvidence, SHARE, SHARE, SHARE, SHARE, SHARE) | st.none(), SHARE, SHARE, SHARE | st.none())
def test_similarity_is_a_share_whatever_the_evidence(
    talk: TalkEvidence | None, words: float, share: float, meaning: float | None
) -> None:
    value = fusion.similarity(RankEvidence(words=words, share=share, dense=meaning, talk=talk))
    assert math.isfinite(value)
    assert -1e-9 <= value <= 1 + 1e-9


def test_full_evidence_is_a_similarity_of_one_with_and_without_an_embedder() -> None:
    talk = TalkEvidence(1, 1, 1, 1, 1)
    for meaning in (1.0, None):
        assert fusion.similarity(RankEvidence(words=1, share=1, dense=meaning, talk=talk)) == pytest.approx(1)
        assert fusion.similarity(RankEvidence(words=1, share=1, dense=meaning)) == pytest.approx(1)


def test_a_fact_is_the_mean_of_words_and_cosine() -> None:
    assert fusion.similarity(RankEvidence(words=1, share=0.5, dense=0.1)) == pytest.approx(0.3)


@check_rows(
    ("score", "least", "greatest", "expected"),
    [(0.5, 0, 1, 0.5), (2, 0, 1, 1), (-1, 0, 1, 0), (1, 1, 1, 1), (0, 1, 1, 0)],
)
def test_scaling_between_bounds(score: float, least: float, greatest: float, expected: float) -> None:
    assert fusion.scale(score, least, greatest) == expected


def test_speakers_count_only_when_somebody_is_named() -> None:
    named = frozenset({"mel"})
    assert fusion.speaker_share(None, named) == 0.5
    shares = [
        fusion.speaker_share("mel", named),
        fusion.speaker_share("bob", named),
        fusion.speaker_share("bob", frozenset()),
    ]
    assert shares == [1, 0, 0.5]


@check_rows("bad", [{"freshness_floor": 1.5}, {"b": math.nan}, {"k1": -1}, {"similarity_threshold": 2}])
def test_settings_out_of_range_are_refused_by_name(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(bad))):
        RankingSettings(**bad)  # type: ignore[arg-type]
