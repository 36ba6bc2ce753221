"""Pairs of names as they come up in talk, and what is to become of them: most entities have nothing but a name."""

from __future__ import annotations

from agent_memory.knowledge.entities import Described
from agent_memory.knowledge.entities.matching import Matcher
from tests.rows import check_rows

MERGED = [
    ("Bob Smith", "bob smith", "person"),
    ("Smith, Bob", "Bob Smith", "person"),
    ("Dr. Bob Smith", "Bob Smith", "person"),
    ("Frau Müller", "Mueller", "person"),
    ("José García", "Jose Garcia", "person"),
    ("Søren Kierkegaard", "Soeren Kierkegaard", "person"),
    ("Sinéad O\u2019Connor", "Sinead O'Connor", "person"),
    ("bob.smith@example.com", "Bob Smith", "person"),
    ("smith-bob@example.com", "Bob Smith", "person"),
    ("Bob.Smith@example.com", "bob.smith@EXAMPLE.com", ""),
    ("Müller", "Mueller", ""),
    ("k8s", "Kubernetes", ""),
    ("k8s cluster", "Kubernetes cluster", ""),
    ("postgres", "PostgreSQL", ""),
    ("Postgres 16", "PostgreSQL 16", "service"),
    ("AWS", "Amazon Web Services", ""),
    ("node.js", "NodeJS", "package"),
    ("web socket", "websocket", ""),
    ("check-out", "checkout", "service"),
    ("svc_auth", "svc-auth", "service"),
    ("data-team", "Data Team", ""),
    ("The Berlin Office", "Berlin office", "place"),
    ("Köln", "Cologne", "place"),
    ("NYC", "New York City", "place"),
    ("Acme GmbH", "ACME", "organisation"),
    ("Acme, Inc.", "Acme Incorporated", "organisation"),
    ("Acme GmbH & Co. KG", "Acme", "organisation"),
    ("Foo S.A.", "Foo SA", ""),
    ("Deutsche Bank AG", "Deutsche Bank", "organisation"),
    ("Smith & Wesson", "Smith and Wesson", "organisation"),
    ("Rocky II", "Rocky 2", "product"),
    ("v2.0 API", "2 API", ""),
    ("\uff34\uff4f\uff4b\uff59\uff4f", "Tokyo", "place"),
]
SUGGESTED = [
    ("Bob Smith", "B. Smith", "person"),
    ("Bob Smith", "Robert Smith", "person"),
    ("Robert J. Smith", "Bob Smith", "person"),
    ("bob", "Bob Smith", "person"),
    ("Smith", "Bob Smith", "person"),
    ("Bob", "Rob", "person"),
    ("Anna Meier", "Anna Meyer", "person"),
    ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", "person"),
    ("bsmith@example.com", "Bob Smith", "person"),
    ("John Smith", "John Smith Jr.", "person"),
    ("Bob Smith", "Robert Smith", ""),
    ("bob", "Bob Smith", ""),
    ("postgres", "PostgreSQL 16", "service"),
    ("svc-auth", "svc-auth-1", "service"),
    ("Acme GmbH", "Acme Inc.", "organisation"),
    ("prod-db", "production-db", "host"),
    ("Kubernets", "Kubernetes", ""),
    ("payment service", "payments service", "service"),
    ("auth service", "authentication service", "service"),
    ("billing", "billing service", "service"),
    ("i18n", "internationalization", ""),
    ("CRM", "customer relationship management", ""),
    ("New York", "New York City", "place"),
    ("Ahmed Hassan", "Hassan Ahmed", "person"),
    ("Sr. Maria", "Maria", "person"),
]
APART = [
    ("Bob Smith", "Alice Smith", "person"),
    ("Bob Smith", "Bob Jones", "person"),
    ("John Smith Jr.", "John Smith Sr.", "person"),
    ("B. Smith", "Alice Smith", "person"),
    ("Marta", "Maria", "person"),
    ("info@example.com", "Bob Smith", "person"),
    ("bob@example.com", "alice@example.com", "person"),
    ("bob.smith@example.com", "bob-smith@example.com", "person"),
    ("info@one.example.com", "info@two.example.com", ""),
    ("svc-auth-1", "svc-auth-2", "service"),
    ("svc-auth-1", "svc-auth-11", "service"),
    ("PostgreSQL 15", "PostgreSQL 16", "service"),
    ("Python 3.11", "Python 3.12", ""),
    ("Python 3.1", "Python 3.10", ""),
    ("GPT-4", "GPT-4o", "product"),
    ("iPhone 12", "iPhone 13", "product"),
    ("eu-west-1", "eu-west-2", "place"),
    ("team-a", "team-b", "organisation"),
    ("ticket ABC-123", "ticket ABC-124", "issue"),
    ("order 10023", "order 10032", "order"),
    ("non-profit", "profit", ""),
    ("prod-eu-west", "prod-us-west", "host"),
    ("staging-db", "production-db", "host"),
    ("payments-db-replica", "payments-db-primary", "host"),
    ("import job", "export job", ""),
    ("frontend", "backend", "service"),
    ("order service", "user service", "service"),
    ("Berlin office", "Munich office", "place"),
    ("C++", "C", ""),
    ("R+", "R", ""),
    ("C#", "C", ""),
    ("GitHub", "GitLab", "service"),
    ("main.py", "main.rs", "file"),
    (".env", "env", "file"),
    ("ガス", "カス", ""),
    ("log4j", "log4j2", "package"),
]


def decided(one: str, other: str, kind: str) -> str:
    match = Matcher([("ent-known", Described(other, kind))]).find(Described(one, kind))
    return match.decision if match else "apart"


@check_rows(("one", "other", "kind"), MERGED)
def test_names_of_one_thing_are_taken_for_one(one: str, other: str, kind: str) -> None:
    assert (decided(one, other, kind), decided(other, one, kind)) == ("merge", "merge")


@check_rows(("one", "other", "kind"), SUGGESTED)
def test_names_that_may_be_of_one_thing_are_only_suggested(one: str, other: str, kind: str) -> None:
    assert (decided(one, other, kind), decided(other, one, kind)) == ("suggest", "suggest")


@check_rows(("one", "other", "kind"), APART)
def test_names_of_two_things_are_kept_apart(one: str, other: str, kind: str) -> None:
    assert (decided(one, other, kind), decided(other, one, kind)) == ("apart", "apart")
