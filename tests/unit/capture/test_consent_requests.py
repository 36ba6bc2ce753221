"""Requests about storing, in the languages of capture, and ordinary sentences with the same words."""

from __future__ import annotations

import pytest

from agent_memory.capture.consent_requests import find_storing_request

STOP = (
    "Please don't store any of this conversation.",
    "Off the record.",
    "Let's keep this off the record.",
    "From now on, don't remember anything I say.",
    "Could you please not save this chat?",
    "I don't want any of this stored.",
    "Nothing from this session should be remembered.",
    "Stop recording this conversation.",
    "Turn off your memory for this conversation.",
    "Keep this conversation out of your memory.",
    "Don't take notes on this discussion.",
    "Please don't store any of this, it is private.",
    "Hi! Please don't store any of this conversation. My salary is 80,000.",
    "Don't remember this.",
    "Speichere bitte nichts von diesem Gespräch.",
    "Merk dir nichts davon.",
    "N'enregistre rien de cette conversation.",
    "Por favor, no guardes nada de esta conversación.",
    "Não guarde nada desta conversa.",
    "Non salvare niente di questa conversazione.",
    "Sla niets van dit gesprek op.",
    "Nie zapisuj niczego z tej rozmowy.",
    "Не сохраняй ничего из этого разговора.",  # noqa: RUF001
    "この会話は保存しないでください。",
    "请不要保存这次对话。",
    "이 대화는 저장하지 마세요.",
)
ORDINARY = (
    "Add a test for the off-the-record interview module.",
    "Do not store passwords in the repo.",
    "don't save the file yet",
    "Can you store again the parsed config in cache?",
    "Don't store the session in a cookie.",
    "I don't remember any of this conversation.",
    "Why don't you store this conversation?",
    "Don't forget to save this conversation.",
    "Don't stop recording this conversation.",
    "This is not off the record.",
    "Is this off the record?",
    "Write a function that does not store anything.",
    "Parse the tokens. Don't store anything. Return a list.",
    "Don't record this session in the audit table.",
    "Don't log anything.",
    "```\nx = 1\n```\nDon't save this.",
    "Don't keep going.",
    "Remember that this conversation is not private.",
    'The page says "don\'t store any of this conversation".',
    "He said: please don't store any of this conversation.",
    "> Please don't store any of this conversation.",
    "```\nPlease don't store any of this conversation.\n```",
    "Speichere die Datei noch nicht.",
    "Ich merke mir nichts davon.",
    "Entre nous, cette API est moche.",
    "No guardes nada en la caché.",
    "Non salvare nulla su disco.",
    "Nie zapisuj pliku.",
    "ファイルを保存しないでください。",
    "不要保存任何东西到磁盘。",
    "이 함수는 저장하지 마.",
)
RESUME = (
    "You can store again.",
    "Okay, you may remember things again.",
    "We're back on the record.",
    "Turn your memory back on.",
    "Du darfst wieder speichern.",
    "Tu peux à nouveau enregistrer.",
    "Puedes volver a guardar.",
    "Você pode guardar de novo.",
    "Puoi salvare di nuovo.",
    "Je mag weer opslaan.",
    "Możesz znowu zapisywać.",
    "Можешь снова сохранять.",
    "また保存してもいいです。",
    "现在可以重新记录了。",
    "다시 저장해도 돼요.",
)
NO_PERMISSION = (
    "You can save the file again.",
    "You can't store again.",
    "Can you store again?",
    "Save it again.",
    "The page says: you can store again.",
    '"You can store again."',
    "Put this back on the record player.",
)


@pytest.mark.parametrize("prompt", STOP)
def test_request_to_store_nothing_is_found(prompt: str) -> None:
    assert find_storing_request(prompt) == "stop"


@pytest.mark.parametrize("prompt", RESUME)
def test_permission_to_store_again_is_found(prompt: str) -> None:
    assert find_storing_request(prompt) == "resume"


@pytest.mark.parametrize("prompt", [*ORDINARY, *NO_PERMISSION])
def test_ordinary_sentence_with_such_words_is_no_request(prompt: str) -> None:
    assert find_storing_request(prompt) is None


def test_request_that_names_the_agent_is_found() -> None:
    assert find_storing_request("Hey Bob, please don't store any of this conversation.", "bob") == "stop"
    assert find_storing_request("Bob, you can store again.", "bob") == "resume"
    assert find_storing_request("Don't store the bob of this conversation.", "bob") is None


def test_message_with_both_requests_stops() -> None:
    assert find_storing_request("You can store again. No: don't store any of this conversation.") == "stop"


def test_request_inside_a_pasted_page_is_not_the_users() -> None:
    page = "Here is the page:\n\n" + "\n".join(f"{n}. Step {n} of the guide." for n in range(60))
    assert find_storing_request(f"{page}\nPlease don't store any of this conversation.") is None
