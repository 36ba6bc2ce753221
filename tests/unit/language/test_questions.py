"""What the wording of a question says about how its evidence is to be read."""

from agent_memory.language.questions import is_foreign, is_other_question, is_unlatin
from tests.rows import check_rows


@check_rows(
    "question",
    [
        "Welche Datenbank benutzen wir?",
        "¿Dónde vive Mara ahora?",
        "Quel est le budget ?",
        "\u6211\u4eec\u4ec0\u4e48\u65f6\u5019\u53d1\u5e03",
        "\u0413\u0434\u0435 \u0436\u0438\u0432\u0451\u0442",
    ],
)
def test_a_question_in_another_language(question: str) -> None:
    assert is_foreign(question)


@check_rows(
    "question",
    [
        "Which database do we use?",
        "k8s",
        "PRs max LOC",
        "what does \u4f60\u597d mean",
        "who said wie geht's",
        "",
        "naïve café",
    ],
)
def test_a_question_in_english_or_of_no_language(question: str) -> None:
    assert not is_foreign(question)


@check_rows(
    "question",
    [
        "\u732b\u559c\u6b22\u4ec0\u4e48",
        "\u0413\u0434\u0435 \u0441\u0435\u0440\u0432\u0435\u0440 X?",
        "\U0001f389\U0001f382",
        "?!",
        "",
        "\u2026",
    ],
)
def test_a_question_in_another_script_or_in_none(question: str) -> None:
    assert is_unlatin(question)


@check_rows("question", ["where is it", "\U0001f389 deploy?", "42", "D\u00f3nde vive \u0141ukasz?", "caf\u00e9 \u732b"])
def test_a_question_in_latin_letters(question: str) -> None:
    assert not is_unlatin(question)


@check_rows(
    "question",
    [
        "Welche Datenbank benutzen wir?",
        "Annemin doğum günü ne zaman?",
        "Kedi nerede uyuyor?",
        "Waar slaapt de kat?",
        "slaapt de kat op zolder",
        "Gdzie śpi kot?",
        "बिल्ली कहाँ सोती है?",
    ],
)
def test_a_question_in_any_other_language(question: str) -> None:
    assert is_other_question(question)


@check_rows("question", ["hoe handle", "What does Hangi do?", "who said wie geht's", "naïve café", "k8s", ""])
def test_a_question_that_only_holds_a_word_of_another_language(question: str) -> None:
    assert not is_other_question(question)
