"""Languages of a text."""

import pytest

from agent_memory.language import languages
from agent_memory.language.languages import guess_languages, is_other_language, load_languages
from tests.rows import check_rows


@check_rows(
    ("text", "expected"),
    [
        ("we decided to use it for the cache", ("en",)),
        ("wir haben das nicht so gemacht", ("en", "de")),
        ("on a décidé de ne pas le faire", ("en", "fr")),
        ("en este proyecto no se usa", ("en", "es")),
        ("a gente não usa isso aqui", ("en", "pt")),
        ("原因はキャッシュです", ("ja", "en")),
        ("我们决定用它", ("zh", "en")),
        ("мы решили это использовать", ("ru", "en")),
        ("다음은 페이지입니다", ("ko", "en")),
        ("bu toplantı için yeni bir oda", ("en",)),  # noqa: RUF001 - no rules of capture
        ("12345", ("en",)),
    ],
)
def test_languages_of_a_text_always_have_english(text: str, expected: tuple[str, ...]) -> None:
    assert guess_languages(text) == expected


def test_languages_with_one_more_are_guessed_by_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**load_languages(), "xx": {"script": "latin", "function_words": ["kaj", "estas", "ni"]}}
    monkeypatch.setattr(languages, "load_languages", lambda: known)
    assert guess_languages("ni estas kaj") == ("en", "xx")
    assert guess_languages("wir haben das nicht so gemacht") == ("en", "de")
    assert guess_languages("我们决定用它") == ("zh", "en")


def test_languages_of_one_script_have_function_words() -> None:
    scripts = [language["script"] for language in load_languages().values()]
    alike = [language for language in load_languages().values() if scripts.count(language["script"]) > 1]
    assert len(alike) > 1
    assert all(language["function_words"] for language in alike)


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("Die Katze schläft in der Küche und ist satt.", True),
        ("La reunión con el equipo es los lunes por la mañana.", True),
        ("Файлы журнала хранятся две недели.", True),
        ("الاجتماع يوم الاثنين", True),
        ("Annem her pazar sabahı bahçede kahve içer.", True),  # noqa: RUF001
        ("Bu toplantı için yeni bir oda gerekiyor.", True),  # noqa: RUF001
        ("The cat sleeps in the kitchen.", False),
        ("Zoë likes crème brûlée at the café on Łukasz Street.", False),
        ("Ben and her mu sigma plot, ne was a co founder.", False),
        ("use pytest -n 0, no cache", False),
        ("Die Hard is on at nine, and El Camino after that.", False),
        ("12:30 → 14:00 🎉", False),
        ("", False),
    ],
)
def test_other_language_is_noticed_by_script_or_words(text: str, is_other: bool) -> None:
    assert is_other_language(text) is is_other
