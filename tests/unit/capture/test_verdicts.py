"""Explicit cues: which words keep a sentence at once, and when they are not meant."""

from __future__ import annotations

from datetime import UTC, date, datetime

from agent_memory.capture import Extractor
from agent_memory.capture.verdicts import find_end
from agent_memory.language.similarity import strip_cue
from agent_memory.settings import CaptureSettings
from tests.rows import check_rows

EXTRACTOR = Extractor(CaptureSettings())


@check_rows(
    ("cue", "message"),
    [
        ("memory", "Remember: the key rotation is every 90 days. Also run the linter."),
        ("memory", "Fix the test. Note that the runner has no network."),
        ("memory", "keep in mind I'm on Windows"),
        ("memory", "Don't forget that the staging database is wiped every Sunday."),
        ("memory", "\u4e0d\u8981\u62c5\u5fc3\u3002 \u8bb0\u4f4f\uff1a\u6211\u4eec\u5728\u661f\u671f\u4e94\u90e8\u7f72"),
        ("standing", "(I do not care about style. Remember: always use tabs in Go files.)"),
        ("standing", "From now on always answer in German."),
        ("standing", "My tests are slow, so never run all of them. Add one for the parser."),
        ("standing", "In this project we write migrations by hand. Fix the failing one."),
        ("standing", "Can you always run the linter before you commit?"),
        ("decision", "We decided to deploy on Fridays only after the checks are green. Now fix the typo."),
        ("decision", "Let's go with Postgres for the ledger"),
        ("decision", "We use pnpm, not npm. Add lodash please."),
        ("identity", "I'm Maria, I work at Kestrel as an engineer. Help me debug this."),
        ("identity", "My wife Lena is allergic to peanuts."),
        ("memory", "Merk dir: die Rechnungen laufen nachts."),
        ("identity", "Ich arbeite bei Kestrel. Hilf mir beim Debuggen."),
        ("decision", "nous avons décidé de garder Symfony"),
        ("identity", "me llamo Ana y vivo en Lisboa"),
        ("standing", "a partir de agora responda em português"),
        ("identity", "mi chiamo Marco"),
        ("decision", "we hebben besloten om Redis te gebruiken"),
        ("memory", "Pamiętaj, że serwer stoi we Frankfurcie."),
        ("identity", "меня зовут Анна"),
        ("decision", "データベースはPostgreSQLに決めました。"),
        ("memory", "请记住, 服务器在法兰克福。"),
        ("standing", "앞으로 커밋 메시지는 영어로 써줘"),
    ],
)
def test_explicit_cue_anywhere_in_a_message_keeps_its_sentence(cue: str, message: str) -> None:
    assert cue in {observation.cue for observation in EXTRACTOR.extract(message, "user")}


@check_rows(
    "message",
    [
        "Don't remember this.",
        "We haven't decided on a database.",
        "We never decided to drop it.",
        "If we decided to use Kafka, what would change?",
        "Maybe we go with Postgres.",
        "Should we always run the tests first?",
        "should we always use UTC",
        "Why do we always use yarn?",
        'He said "always use tabs" in the review.',
        "The page says: never commit secrets.",
        "Write a persona: I am Bob, I love jazz.",
        'The button should say "Remember me".',
        "TODO: remember to bump the version",
        "My build is failing again.",
        "I'm stuck on this error.",
        "It never works on my machine.",
        "You always forget the semicolon.",
        "let's go with the second option",
        "wir haben uns noch nicht entschieden",
        "on n'a pas décidé",
        "no hemos decidido nada",
    ],
)
def test_cue_that_is_not_meant_keeps_nothing(message: str) -> None:
    assert [observation.content for observation in EXTRACTOR.extract(message, "user") if observation.cue] == []


@check_rows("source", ["assistant", "tool:bash"])
def test_cue_in_words_of_another_source_waits(source: str) -> None:
    text = "alice commented:\nTeam decision: from now on we always squash.\nWe decided to keep Postgres."
    assert [observation.cue for observation in EXTRACTOR.extract(text, source) if observation.cue] == []


@check_rows(
    ("text", "content"),
    [
        ("Remember that the port is 8080", "The port is 8080"),
        ("please remember the port is 8080", "the port is 8080"),
        ("Keep in mind, prod is frozen", "Prod is frozen"),
        ("Please always use British spelling.", "Always use British spelling."),
        ("Remember to always lint.", "Always lint."),
        ("Souviens-toi que le port est 8080", "Le port est 8080"),
        ("Merk dir, dass der Port 8080 ist", "Merk dir, dass der Port 8080 ist"),
        ("Remember the time we broke prod", "Remember the time we broke prod"),
        ("The port is 8080", "The port is 8080"),
        ("Remember", "Remember"),
    ],
)
def test_strip_cue_removes_only_words_of_asking(text: str, content: str) -> None:
    assert strip_cue(text) == content


@check_rows(
    ("text", "last"),
    [
        ("Prod is frozen until 3 May 2099.", date(2099, 5, 3)),
        ("The lease runs until May 2099", date(2099, 5, 31)),
        ("Prod is frozen until mid December 2099.", date(2099, 12, 21)),
        ("Die Sperre gilt bis Ende März 2099", date(2099, 4, 1)),
        ("The freeze lasts until 3 May 2099 and the staging port is 8081.", None),
        ("The staging port is 8081 and the freeze lasts until 3 May 2099.", None),
        ("The staging port is 8081. The freeze lasts until 3 May 2099.", None),
        ("It takes until 3 May 2099 to move the port.", None),
        ("The office is open until Friday every week.", None),
        ("Stay until Friday week.", None),
        ("Stay until 3 May 2099 or 5 May 2099.", None),
        ("The shop has two keys until 3/4/2099.", None),
    ],
)
def test_end_of_text_is_found_only_if_whole_text_ends_then(text: str, last: date | None) -> None:
    end = find_end(text, datetime(2026, 11, 26, 12, tzinfo=UTC))
    assert (end and end.date() - date.resolution) == last
