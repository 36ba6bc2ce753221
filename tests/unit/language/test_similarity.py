"""When one statement repeats another, and when it says something else in nearly the same words."""

from __future__ import annotations

from agent_memory.capture import is_near_duplicate
from agent_memory.language.similarity import differ_in_meaning, is_restated
from tests.rows import check_rows

CORRECTIONS = [
    ("The payments service must log full card numbers in staging.", "never"),
    ("We deploy to the cluster in Frankfurt after each merge to main.", "not"),
    ("Der Dienst schreibt Kartennummern in das Protokoll der Testumgebung.", "nie"),
    ("Le service écrit les numéros de carte dans le journal de test.", "jamais"),
    ("El servicio escribe los números de tarjeta en el registro de pruebas.", "no"),
    ("O serviço grava os números de cartão no registro de testes.", "não"),
    ("Usługa zapisuje numery kart w dzienniku środowiska testowego.", "nie"),
    ("Сервис пишет номера карт в журнал тестовой среды.", "не"),
]


@check_rows(("statement", "negation"), CORRECTIONS)
def test_a_negation_makes_another_statement(statement: str, negation: str) -> None:
    first, _, rest = statement.partition(" ")
    corrected = f"{first} {negation} {rest}"
    assert not is_near_duplicate(statement, corrected)
    assert not is_near_duplicate(corrected, statement)


@check_rows(
    ("one", "other"),
    [
        ("ログにカード番号を書く設定にします", "ログにカード番号を書かない設定にします"),
        ("我们在测试环境的日志里写完整的卡号", "我们在测试环境的日志里不写完整的卡号"),
        ("the retry limit of the importer is 5", "the retry limit of the importer is 6"),
        ("the importer of the shop runs on Python 3.11", "the importer of the shop runs on Python 3.12"),
        ("the importer of the shop reads order_id", "the importer of the shop reads order_uid"),
        ("the importer of the shop calls getUser", "the importer of the shop calls getUsers"),
        ("the importer retries each order three times", "the importer retries each order two times"),
        ("the cache of the shop stays on during a deploy", "the cache of the shop stays off during a deploy"),
        ("we enable the cache of the shop in tests", "we disable the cache of the shop in tests"),
        ("we always squash before we merge to main", "we never squash before we merge to main"),
        ("the shop imports the orders before midnight", "the shop imports the orders after midnight"),
        ("we don't run the importer on the replica", "we do run the importer on the replica"),
        (
            "the ledger of the shop is kept in Postgres on the small machine",
            "the ledger of the shop is kept in MySQL on the small machine",
        ),
        ("the invoice service calls the ledger service", "the ledger service calls the invoice service"),
        ("Alice reports to Bob in finance", "Bob reports to Alice in finance"),
        ("Backups go from Berlin to Madrid nightly", "Backups go from Madrid to Berlin nightly"),
        ("Backups go from Berlin to Madrid nightly", "Backups go to Berlin from Madrid nightly"),
        ("give interns production access to the database", "give interns readonly production access to the database"),
        ("we use Postgres for billing and reports", "we use Postgres for billing and reports, hardly"),
        ("log card numbers to the debug file", "log masked card numbers to the debug file"),
        ("I'm allergic to peanuts and walnuts", "I'm barely allergic to peanuts and walnuts"),
        ("share reports with the vendor team weekly", "share redacted reports with the vendor team weekly"),
        ("we deploy to production on Fridays", "we only deploy to production on Fridays"),
        ("Wir deployen freitags auf Produktion", "Wir deployen freitags kaum auf Produktion"),
        ("Le service A appelle le service B", "Le service B appelle le service A"),
        ("张三向李四汇报财务", "李四向张三汇报财务"),
    ],
)
def test_what_turns_a_statement_round_makes_another_one(one: str, other: str) -> None:
    assert not is_near_duplicate(one, other)
    assert not is_near_duplicate(other, one)


@check_rows(
    ("one", "other"),
    [
        ("We never push to main.", "we never push to main"),
        ("The retry limit of the importer is 5", "the retry limit of the importer is 5 now"),
        ("I prefer dark mode in the editor", "I really prefer dark mode in the editor, please"),
        ("We also deploy to the cluster in Frankfurt", "We deploy to the cluster in Frankfurt now."),
        ("Wir nutzen PostgreSQL für Rechnungen", "Wir nutzen jetzt auch PostgreSQL für Rechnungen"),
        ("从现在开始提交信息用英文写", "从现在开始提交信息用英文写吧"),
    ],
)
def test_a_repetition_is_one(one: str, other: str) -> None:
    assert is_near_duplicate(one, other)


def test_a_statement_that_adds_a_fact_is_no_repetition() -> None:
    short = "The staging database lives in Frankfurt."
    assert not is_near_duplicate(short, f"{short[:-1]} and a cron job of the platform team wipes it each night.")


def test_the_model_may_tell_it_in_its_own_words() -> None:
    assert is_restated("I really prefer dark mode in every editor", ["User prefers dark mode in editors"])
    assert is_restated("please never push to main", ["User does not want pushes to main"])


@check_rows(
    ("said", "stored"),
    [
        ("the port of the staging database is 6432", "The port of the staging database is 5432"),
        ("we never log card numbers in staging", "The team logs card numbers in staging"),
        ("we log card numbers in staging", "The team does not log card numbers in staging"),
    ],
)
def test_what_the_model_stored_with_another_meaning_is_not_what_was_said(said: str, stored: str) -> None:
    assert not is_restated(said, [stored])


def test_case_and_white_space_change_no_meaning() -> None:
    assert not differ_in_meaning("Never  push to MAIN today", "never push to main today")
