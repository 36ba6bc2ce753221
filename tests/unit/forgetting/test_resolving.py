"""Which memories, or which clauses of them, a request to forget means."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.forgetting import read_request, resolve
from agent_memory.models import Link, Memory

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def memories_of(facts: list[str]) -> list[Memory]:
    return [
        Memory(agent_id="amy", content=text, timestamp=NOW - timedelta(hours=len(facts) - at))
        for at, text in enumerate(facts)
    ]


def left(facts: list[str], request: str) -> list[str]:
    """Return what is left of some facts once what a request means is gone."""
    targets = {each.memory.content: each.remains for each in resolve(read_request(request, NOW), memories_of(facts))}
    remaining = (targets.get(text, text) for text in facts)
    return [text for text in remaining if text is not None]


WHOLE_NAMES = [
    (["Ann's badge is K-12.", "Anna's badge is K-77."], "Ann's badge", ["Anna's badge is K-77."]),
    (["Max plays chess.", "Maxine plays chess."], "forget that Max plays chess", ["Maxine plays chess."]),
    (["Art lives in Rome.", "Arthur lives in Oslo."], "where Art lives", ["Arthur lives in Oslo."]),
    (
        ["Java is used at Orbit.", "JavaScript is used at Nimbus."],
        "delete the Java note",
        ["JavaScript is used at Nimbus."],
    ),
    (["Rosa's code is 4411.", "Rosalind's code is 9911."], "forget rosa's code", ["Rosalind's code is 9911."]),
    (["Ed owes Tom 20 euros.", "Eddie owes Tom 30 euros."], "what Ed owes Tom", ["Eddie owes Tom 30 euros."]),
]
LONGER_NAMES = [
    (
        ["Project Nova ships in June.", "Project Nova Prime ships in July."],
        "Project Nova",
        ["Project Nova Prime ships in July."],
    ),
    (["Ann's desk is 4.", "Ann-Marie's desk is 9."], "Ann's desk", ["Ann-Marie's desk is 9."]),
    (
        ["Server web-1 runs nginx.", "Server web-10 runs caddy."],
        "forget what web-1 runs",
        ["Server web-10 runs caddy."],
    ),
    (
        ["Ticket K-12 is closed.", "Ticket K-120 is open.", "Ticket K-12-B is open."],
        "ticket K-12",
        ["Ticket K-120 is open.", "Ticket K-12-B is open."],
    ),
    (["Version 2.1 fixed login.", "Version 2.10 fixed search."], "version 2.1", ["Version 2.10 fixed search."]),
    (["Room 3 has a projector.", "Room 31 has a piano."], "Room 3", ["Room 31 has a piano."]),
]
OTHER_WORDS = [
    (
        ["Lea's home address is 5 Elm Street.", "Lea's dog is called Rex."],
        "where Lea lives",
        ["Lea's dog is called Rex."],
    ),
    (["My spouse is called Tom.", "My boss is called Jim."], "forget who I am married to", ["My boss is called Jim."]),
    (["Ben earns 70,000 a year.", "Ben cycles to work."], "Ben's salary", ["Ben cycles to work."]),
    (["Kim was born on 3 March 1990.", "Kim plays the cello."], "Kim's birthday", ["Kim plays the cello."]),
    (["Omar drives a red van.", "Omar sings in a choir."], "Omar's car", ["Omar sings in a choir."]),
]
DENIALS = [
    (["Lea eats fish but does not eat nuts."], "forget what I said about Lea and nuts", ["Lea eats fish."]),
    (["Lea eats fish but does not eat nuts."], "forget that Lea eats fish", ["Lea does not eat nuts."]),
    (["Lea does not eat nuts or fish."], "forget the nuts of Lea", ["Lea does not eat fish."]),
    (
        ["Ben is allergic to penicillin.", "Ben is not allergic to aspirin."],
        "Ben's penicillin allergy",
        ["Ben is not allergic to aspirin."],
    ),
    (
        ["The API supports XML.", "The API does not support SOAP."],
        "that the API supports XML",
        ["The API does not support SOAP."],
    ),
    (["Kim likes jazz.", "Kim does not like opera."], "that Kim does not like opera", ["Kim likes jazz."]),
    (
        ["Kim drinks coffee.", "Kim does not drink coffee."],
        "forget that Kim does not drink coffee",
        ["Kim drinks coffee."],
    ),
    (["Tom never smokes and drives a van."], "that Tom drives a van", ["Tom never smokes."]),
    (["Tom does not smoke or drink wine."], "that Tom doesn't smoke", ["Tom does not drink wine."]),
]
TIMES = [
    (
        ["In 2021 Ann lived in Paris.", "In 2023 Ann lived in Rome."],
        "where Ann lived in 2021",
        ["In 2023 Ann lived in Rome."],
    ),
    (["Ann used to live in Paris.", "Ann now lives in Rome."], "Ann's old address", ["Ann now lives in Rome."]),
    (
        ["Ann lived in Paris until 2020.", "Ann has lived in Rome since 2021."],
        "where Ann lives now",
        ["Ann lived in Paris until 2020."],
    ),
    (
        ["The Berlin office closed in March 2026.", "The Berlin office opened again in May 2026."],
        "everything about the Berlin office before May",
        ["The Berlin office opened again in May 2026."],
    ),
    (
        ["On 3 March 2026 Kim saw a doctor.", "On 9 April 2026 Kim saw a doctor."],
        "Kim's doctor's visit on 3 March 2026",
        ["On 9 April 2026 Kim saw a doctor."],
    ),
]
SHARED = [
    (
        ["Ann's badge is K-12.", "Ann's locker is 7.", "Ben's badge is K-13."],
        "Ann's badge",
        ["Ann's locker is 7.", "Ben's badge is K-13."],
    ),
    (
        ["Lea works at Orbit.", "Lea plays tennis.", "Lea has two sons."],
        "that Lea plays tennis",
        ["Lea works at Orbit.", "Lea has two sons."],
    ),
    (["Lea works at Orbit.", "Tom works at Orbit."], "where Lea works", ["Tom works at Orbit."]),
    (["Lea works at Orbit.", "Tom likes tea.", "Lea plays tennis."], "everything about Lea", ["Tom likes tea."]),
    (
        ["The Oslo office has a gym.", "The Rome office has a gym."],
        "the gym of the Oslo office",
        ["The Rome office has a gym."],
    ),
    (
        ["Ann's phone is 555.", "Ann's e-mail is ann@x.org."],
        "forget everything about Ann except her e-mail",
        ["Ann's e-mail is ann@x.org."],
    ),
    (["Ann's badge is K-12."], "Ann's phone", ["Ann's badge is K-12."]),
    (["Ann's badge is K-12."], "Zoe's badge", ["Ann's badge is K-12."]),
]
COMPOUNDS = [
    (["Lea drives a red van and is allergic to nuts."], "what Lea drives", ["Lea is allergic to nuts."]),
    (["Lea drives a red van and is allergic to nuts."], "Lea's nut allergy", ["Lea drives a red van."]),
    (["Lea likes tea, coffee and milk."], "that Lea likes coffee", ["Lea likes tea and milk."]),
    (["Lea likes tea, coffee and milk."], "that Lea likes tea", ["Lea likes coffee and milk."]),
    (["Ann has badge K-12 and Bob has badge K-77."], "Ann's badge", ["Bob has badge K-77."]),
    (["Ann's badge is K-12, and her locker is 7."], "Ann's badge", ["Ann's locker is 7."]),
    (["Ann's badge is K-12, and her locker is 7."], "Ann's locker", ["Ann's badge is K-12."]),
    (["Lea lives in Oslo. She works at Orbit."], "where Lea lives", ["Lea works at Orbit."]),
    (["Lea lives in Oslo. She works at Orbit."], "where Lea works", ["Lea lives in Oslo."]),
    (["Ben speaks French and German, and plays chess."], "that Ben plays chess", ["Ben speaks French and German."]),
    (
        ["The server runs nginx, while the database uses port 5432."],
        "which port the database uses",
        ["The server runs nginx."],
    ),
    (["Kim has a cat and lives in Rome."], "everything I said about Kim", []),
]
IDENTIFIERS = [
    (
        ["The card is 4111-1111-1111-1111.", "The other card is 4222-2222-2222-2222."],
        "forget card 4111 1111 1111 1111",
        ["The other card is 4222-2222-2222-2222."],
    ),
    (["Badge K-12 opens the lab.", "Badge K-13 opens the gym."], "badge k12", ["Badge K-13 opens the gym."]),
    (["Badge k 12 opens the lab.", "Badge k 13 opens the gym."], "badge K-12", ["Badge k 13 opens the gym."]),
    (["Badge \uff2b\uff0d\uff11\uff12 opens the lab.", "Badge K-13 opens it."], "badge K-12", ["Badge K-13 opens it."]),
    (
        ["IBAN DE89 3704 0044 belongs to Ann.", "IBAN DE89 3704 0045 belongs to Bob."],
        "de8937040044",
        ["IBAN DE89 3704 0045 belongs to Bob."],
    ),
    (
        ["Mail ann.lee@x.org about it.", "Mail lee@x.org about it."],
        "the note with lee@x.org",
        ["Mail ann.lee@x.org about it."],
    ),
    (["Order AB_99/7 is late.", "Order AB_99/71 is late."], "order ab-99-7", ["Order AB_99/71 is late."]),
]
SCRIPTS = [
    (["Jos\u00e9's desk is 4.", "Josef's desk is 5."], "Jose's desk", ["Josef's desk is 5."]),
    (["M\u00fcller's desk is 4.", "Muller-Lang's desk is 5."], "Mueller's desk", ["Muller-Lang's desk is 5."]),
    (
        ["\u042e\u043b\u0438\u044f lives in Oslo.", "\u0418\u0432\u0430\u043d lives in Rome."],
        "where Yulia lives",
        ["\u0418\u0432\u0430\u043d lives in Rome."],
    ),
    (
        ["Aleksandr plays chess.", "Aleksei plays chess."],
        "that \u0410\u043b\u0435\u043a\u0441\u0430\u043d\u0434\u0440 plays chess",
        ["Aleksei plays chess."],
    ),
    (
        ["\u30bf\u30ca\u30ab likes tea.", "\u30b5\u30c8\u30a6 likes tea."],
        "that Tanaka likes tea",
        ["\u30b5\u30c8\u30a6 likes tea."],
    ),
]
REFERENCES = [
    (
        ["Ann's manager is Bob.", "Bob's badge is K-12.", "Zoe's badge is K-9."],
        "the badge of Ann's manager",
        ["Ann's manager is Bob.", "Zoe's badge is K-9."],
    ),
    (["Ann's manager is Bob.", "Bob's badge is K-12."], "Ann's manager", ["Bob's badge is K-12."]),
    (
        ["The key is in vault Kappa.", "Vault Kappa's code is 1234.", "The tea is in the kitchen."],
        "vault Kappa and everything that refers to it",
        ["The tea is in the kitchen."],
    ),
]
JOINED = [
    (
        ["Ann's phone is 555.", "Ann's badge is K-12.", "Ann's desk is 4."],
        "Ann's phone and badge",
        ["Ann's desk is 4."],
    ),
    (
        ["Ann's badge is K-12.", "Bob's badge is K-13.", "Ann's desk is 4."],
        "Ann and Bob's badges",
        ["Ann's desk is 4."],
    ),
    (["Ann sings.", "Bob sings.", "Zoe sings."], "everything about Ann and Bob", ["Zoe sings."]),
    (["Lea drives a van and has a nut allergy."], "that Lea drives a van and has a nut allergy", []),
    (
        ["The black and white cat is Tom.", "The black dog is Rex."],
        "the black and white cat",
        ["The black dog is Rex."],
    ),
    (["I live in Oslo.", "I was born in Rome.", "I like tea."], "where I live and where I was born", ["I like tea."]),
]
ASIDES = [
    (["Tess (born in Oslo) works at Orbit."], "where Tess was born", ["Tess works at Orbit."]),
    (["Name: Tess; city: Oslo; phone: 555."], "Tess's phone", ["Name: Tess; city: Oslo"]),
    (["Ann's badge is 1 and Bob's phone is 555."], "Ann's phone", ["Ann's badge is 1 and Bob's phone is 555."]),
    (["Sid's phone was 111 in 2020 and is 222 now."], "Sid's phone in 2020", ["Sid's phone is 222 now."]),
    (["The repo core is old.", "The repo core-utils is new."], "the repo core", ["The repo core-utils is new."]),
    (["\u738b\u4f1f likes tea.", "\u674e\u5a1c likes tea."], "\u738b\u4f1f", ["\u674e\u5a1c likes tea."]),
]
TOPICS = [
    (
        ["Dana drives a Volvo.", "Dana's car needs tyres.", "Dana plays the harp."],
        "Dana's car",
        ["Dana plays the harp."],
    ),
    (["Leo's wife is Eva.", "Leo's son is Max.", "Leo's boss is Jim."], "Leo's family", ["Leo's boss is Jim."]),
    (["Leo's wife is Eva.", "Leo's son is Max."], "Leo's wife", ["Leo's son is Max."]),
    (["Uri likes cats but not dogs."], "that Uri likes cats", ["Uri does not like dogs."]),
    (["Uri likes cats but not dogs."], "that Uri does not like dogs", ["Uri likes cats."]),
    (["Ann trusts Bob.", "Bob trusts Ann."], "that Ann trusts Bob", ["Bob trusts Ann."]),
    (["Uma, who lives in Oslo, drives a Saab."], "where Uma lives", ["Uma drives a Saab."]),
    (["Web runs on port 80 and mail on port 25."], "the port of mail", ["Web runs on port 80."]),
    (["The door code is 4711.", "The gate code is 4712."], "four seven one one", ["The gate code is 4712."]),
    (["Cluster BLUE-FALCON is down.", "Cluster BLUE-HERON is up."], "bluefalcon", ["Cluster BLUE-HERON is up."]),
    (
        ["Invoice INV-2024-001 is paid.", "Invoice INV-2024-002 is open."],
        "inv 2024 001",
        ["Invoice INV-2024-002 is open."],
    ),
]
EVERYDAY = [
    (["I drink coffee black, no sugar.", "I switched to oat milk in my coffee."], "coffee", []),
    (["My laptop is a Lenovo.", "I no longer use Fedora on my laptop."], "my laptop", []),
    (
        ["The customer Acme Wood has an SLA of 99 percent.", "Acme Wood renegotiated, their SLA is 98 percent."],
        "Acme Wood",
        [],
    ),
    (["Acme Wood renegotiated, their SLA is 98 percent."], "Acme Wood's SLA", ["Acme Wood renegotiated."]),
    (["I'm allergic to nuts, so watch out when ordering lunch."], "that I'm allergic to nuts", []),
    (["We dropped Loki, logs go to Elastic."], "what I said about Loki", ["Logs go to Elastic."]),
    (["I no longer use Fedora on my laptop, it runs Debian."], "my laptop", ["It runs Debian."]),
    (["Kim plays chess and sings like a bird."], "that Kim plays chess", ["Kim sings like a bird."]),
    (
        ["Kim drinks tea.", "Kim no longer drinks tea at night."],
        "that Kim drinks tea",
        ["Kim no longer drinks tea at night."],
    ),
    (["My boss is Tim Reuter, we meet on Mondays.", "Tim has left."], "everything about Tim", ["We meet on Mondays."]),
    (["Nova ships in June.", "Nova Prime ships in July."], "everything about Nova", ["Nova Prime ships in July."]),
    (
        ["Tim Reuter sings.", "Tim Vogel sings.", "Tim left."],
        "everything about Tim",
        ["Tim Reuter sings.", "Tim Vogel sings."],
    ),
]
CASES = [
    *EVERYDAY,
    *WHOLE_NAMES,
    *LONGER_NAMES,
    *OTHER_WORDS,
    *DENIALS,
    *TIMES,
    *SHARED,
    *COMPOUNDS,
    *IDENTIFIERS,
    *SCRIPTS,
    *REFERENCES,
    *TOPICS,
    *JOINED,
    *ASIDES,
]


@pytest.mark.parametrize(("facts", "request_", "expected"), CASES)
def test_what_a_request_means_goes_and_the_rest_stays(facts: list[str], request_: str, expected: list[str]) -> None:
    assert left(facts, request_) == expected


def test_where_words_say_nothing_the_nearest_in_meaning_goes() -> None:
    facts = ["Lea collects stamps.", "Lea breeds bees."]
    near = {"collects stamps": 0.7, "breeds bees": 0.1}
    memories = memories_of(facts)
    request = read_request("Lea's philately", NOW)

    found = resolve(request, memories, lambda _, texts: [near[text] for text in texts])

    assert [each.memory.content for each in found] == ["Lea collects stamps."]


def test_what_is_hardly_near_is_not_meant_though_all_others_are_farther() -> None:
    memories = memories_of(["I prefer dark mode.", "I collect stamps.", "I breed bees."])

    assert (
        resolve(read_request("zebra crossing", NOW), memories, lambda _, texts: [0.2, 0.05, 0.01][: len(texts)]) == []
    )


@pytest.mark.parametrize(("words", "goes"), [("Bremen", False), ("philately", True)])
def test_a_name_that_no_memory_has_means_nothing_however_near_it_is(words: str, goes: bool) -> None:
    memories = memories_of(["I work in Hamburg.", "I collect stamps."])

    found = resolve(read_request(words, NOW), memories, lambda _, texts: [0.9, 0.2][: len(texts)])

    assert bool(found) is goes


def test_what_is_linked_to_it_goes_where_the_request_says_so() -> None:
    first, other = memories_of(["Project Nova is late.", "Tea is at four."])
    second = Memory(agent_id="amy", content="It was decided on Monday.", links=[Link(rel="about", id=first.id)])
    memories = [first, other, second]

    found = resolve(read_request("Project Nova and everything that refers to it", NOW), memories)

    assert [each.memory.id for each in found] == [first.id, second.id]


@pytest.mark.parametrize("words", ["", "please forget", "forget it", "!!", "   "])
def test_a_request_that_says_nothing_means_nothing(words: str) -> None:
    assert left(["Ann's badge is K-12."], words) == ["Ann's badge is K-12."]


def test_what_several_keep_is_meant_and_not_all_else_about_them() -> None:
    facts = ["Ann and Bob keep a spare key.", "Ann and Bob live in Oslo."]
    assert left(facts, "forget that Ann and Bob keep a spare key") == ["Ann and Bob live in Oslo."]
