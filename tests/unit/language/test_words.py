"""Terms: what is split, folded, stemmed, dropped and kept whole."""

from agent_memory.language.words import STOP_WORDS, index_terms, query_terms
from tests.rows import check_rows


def test_words_are_stemmed_and_stop_words_dropped() -> None:
    assert index_terms("The databases were running") == ["databas", "run"]


@check_rows(
    ("text", "expected"),
    [
        ("src/agent_memory/foo.py", {"src/agent_memory/foo.py", "src", "agent", "memori", "foo", "py"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("MemoryService", {"memoryservic", "memori", "servic"}),
        ("getHTTPResponse", {"gethttprespons", "get", "http", "respons"}),
        ("v3.11.2", {"v3.11.2", "v3", "11", "2"}),
        ("C++ and C#", {"c", "c++", "c#"}),
    ],
)
def test_compounds_are_split_and_kept_whole(text: str, expected: set[str]) -> None:
    assert set(index_terms(text)) == expected


def test_a_compound_is_found_by_its_lower_case_form() -> None:
    assert set(query_terms("memoryservice")) <= set(index_terms("MemoryService"))


@check_rows("text", ["Caroline's", "Caroline\u2019s", "CAROLINE"])
def test_possessives_and_case_do_not_matter(text: str) -> None:
    assert query_terms(text) == ["carolin"]


@check_rows("text", ["don't", "isn't it", "I'm", "we'll", "", "?!", "what is it"])
def test_a_text_of_function_words_has_no_terms(text: str) -> None:
    assert query_terms(text) == []


def test_width_accents_and_ordinals_are_folded() -> None:
    assert index_terms("Ｃａｆé 28th") == ["cafe", "28"]


def test_accents_of_other_scripts_are_letters_and_stay() -> None:
    assert index_terms("й") != index_terms("и")


@check_rows("sign", ["🍕", "❌", "⏰", "⭐", "👍"])
def test_index_terms_with_an_emoji_have_it(sign: str) -> None:
    assert query_terms(sign) == [sign]
    assert sign in index_terms(f"Friday is pizza day{sign} in Lisbon.")


def test_index_terms_leave_variants_and_lines_of_tables_out() -> None:
    assert index_terms("👍🏽 ❤️ ──│ →") == index_terms("👍 ❤")


def test_scripts_without_spaces_become_overlapping_pairs() -> None:
    assert query_terms("数据库") == ["数据", "据库"]


def test_a_single_character_is_found_inside_a_longer_run() -> None:
    assert set(query_terms("猫")) <= set(index_terms("黒猫が好き"))


def test_thai_pairs_and_mixed_latin_words_are_both_found() -> None:
    terms = index_terms("ใช้PostgreSQLสำหรับ")
    assert "postgresql" in terms
    assert set(query_terms("สำหรับ")) <= set(terms)


def test_devanagari_vowel_signs_do_not_split_words() -> None:
    assert index_terms("हिन्दी") == ["हिन्दी"]


def test_very_long_runs_are_cut() -> None:
    assert all(len(term) <= 64 for term in index_terms("a" * 5000))


def test_negations_are_no_stop_words() -> None:
    assert STOP_WORDS.isdisjoint({"not", "no", "never", "last", "before"})
