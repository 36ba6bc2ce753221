"""SecretRedactor: what it takes out, what it leaves, and that a second pass changes nothing."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.redaction import Redactor, SecretRedactor

REDACTOR = SecretRedactor()
ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"
HEX = "9f86d081884c7d659a2feaa0c55ad015"


def joined(*parts: str) -> str:
    """Build a fake secret from parts, so that no scanner takes this file for a leak."""
    return "".join(parts)


BY_FORM = {
    "github-token": joined("gh", "p_", ALNUM, "Zz12"),
    "gitlab-token": joined("gl", "pat-", ALNUM[:20]),
    "npm-token": joined("np", "m_", ALNUM, "Zz12"),
    "pypi-token": joined("py", "pi-", "AgEIcHlwaS5vcmc", ALNUM * 3),
    "slack-token": joined("xo", "xb-", "123456789012-", ALNUM[:24]),
    "slack-webhook": joined("https://hooks.sl", "ack.com/services/T00000000/B00000000/", ALNUM[:24]),
    "stripe-key": joined("sk", "_live_", ALNUM[:24]),
    "api-key": joined("dk", "_live_", HEX),
    "openai-key": joined("sk", "-proj-", ALNUM, ALNUM),
    "anthropic-key": joined("sk", "-ant-api03-", ALNUM, "-", ALNUM),
    "huggingface-token": joined("h", "f_", ALNUM, "Ab"),
    "google-key": joined("AI", "za", ALNUM, "abc"),
    "aws-key": joined("AK", "IA", "IOSFODNN7EXAMPLQ"),
    "sendgrid-key": joined("S", "G.", ALNUM[:22], ".", ALNUM, ALNUM[:11]),
    "telegram-token": joined("123456789", ":AA", ALNUM, "b"),
    "discord-token": joined("M", ALNUM[:23], ".", "Gx1y2Z", ".", ALNUM[:27]),
    "sentry-token": joined("sn", "trys_", ALNUM, ALNUM),
    "jwt": joined("ey", "J", ALNUM[:20], ".ey", "J", ALNUM[:30], ".", ALNUM),
    "azure-key": joined("Account", "Key=", ALNUM * 2, "=="),
    "databricks-token": joined("da", "pi", HEX),
    "credit-card": joined("4111 1111", " 1111 1111"),
    "password-hash": joined("$2", "b$12$", ALNUM, ALNUM[:21]),
}


@pytest.mark.parametrize("kind", BY_FORM)
def test_a_secret_of_a_known_form_is_replaced_by_its_kind(kind: str) -> None:
    secret = BY_FORM[kind]
    redaction = REDACTOR.redact(f"we use {secret} for the deployment, keep it")

    assert kind in redaction.kinds
    assert f"[redacted:{kind}]" in redaction.text
    assert secret not in redaction.text
    assert redaction.text.startswith("we use ")
    assert redaction.text.endswith("for the deployment, keep it")


PASSWORD = joined("Mango", "#fest", "77")

IN_PROSE = [
    "the password is {}",
    "password: {}",
    "pw {} for the test box",
    "DB_PASS='{}'",
    "export PGPASSWORD={}",
    'MYSQL_ROOT_PASSWORD: "{}"',
    "Passwort ist {}, und nur intern",
    "das Kennwort lautet {}",
    "la contraseña es {}",
    "le mot de passe est {}",
    "a senha é {}",
    "パスワードは{}です",
    "密码是{} 别外传",
    "пароль: {}",
    "the wifi password for the guest network is still {}",
    "ci-bot@lumen.example / pw: {}",
    "log in with admin / {} please",
    "postgres://reader:{}@db.internal:5432/shop",
    "amqp://guest:{}@rabbit:5672/%2f",
    "curl -u deploy:{} https://example.com",
    "mysql -u root -p{} shop",
    "Server=db;User Id=sa;Password={};Encrypt=true",
    "git remote add x https://bob:{}@git.example.com/r.git",
    '{{"user": "bob", "password": "{}"}}',
    "**Password:** {}",
]


@pytest.mark.parametrize("sentence", IN_PROSE)
def test_a_password_that_is_named_is_removed_in_any_language(sentence: str) -> None:
    assert PASSWORD not in REDACTOR.redact(sentence.format(PASSWORD)).text


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter",
        "the password is swordfish.",
        "PIN is 4821",
        "here's a 2fa backup code, 8842-1190-3307",
        "recovery code: 1f3a-99bc-77de",
        "the api key is 7f3b9a1c5d2e8f60",
        "token (a1b2c3d4e5f6a7b8) for the bot",
        "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access accident",
        "company card 5412 7534 8821 0093 exp 09/27",
        "IBAN DE89 3704 0044 0532 0130 00",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "authorization: Bearer abcdef123456",
        "Cookie: session=1a2b3c4d5e; theme=dark",
        "x-api-key: 12ab34cd56ef",
        "https://example.com/cb?access_token=ab12cd34ef56",
        joined("aws_secret_access_key = ", "q7Rb/hAbloQSlQsbeBazJ+nXS89LRe5hk5cthAoM"),
    ],
)
def test_other_secrets_that_words_give_away_are_removed(text: str) -> None:
    assert REDACTOR.redact(text).kinds


HARMLESS = [
    "the password field is required",
    "The password is stored hashed with bcrypt.",
    "the password is wrong",
    "password: must be at least 12 characters",
    "password = getpass.getpass()",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "DB_PASSWORD=${DB_PASSWORD}",
    "def login(user: str, password: str) -> Token:",
    "token = parser.next_token()",
    "git commit 3f2a9c81d0b7e6f5a4c3b2d1e0f9a8b7c6d5e4f3 fixed it",
    "see 550e8400-e29b-41d4-a716-446655440000 in the log",
    "version 1.2.3-beta.4+build.567 of amplifier-core 2.0.2",
    "/usr/local/lib/python3.11/site-packages/agent_memory/redaction/patterns.py",
    "https://github.com/org/repo/blob/main/src/token_store.py#L120-L140",
    "the token count is 2048 and max_tokens=4096",
    "we use JWT tokens with RS256 and a 15 minute expiry",
    "the access token expires after 3600 seconds",
    "das Passwort ist falsch",
    "das Passwort ist im Tresor",
    "le mot de passe est obligatoire",
    "la contraseña es incorrecta",
    "la clave es simplificar",
    "パスワードは必須です",
    "密码是必填的",
    "we keep secrets in Vault under kv/prod/payments",
    "the CI token is stored in the settings as NPM_TOKEN",
    "Authorization: Bearer <token>",
    "order number 1234567890123456 was shipped",
    "timestamp 1718031122345",
    "call +1 415 555 0132 or +49 151 23456789",
    "ISBN 978-3-16-148410-0",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
    'cache key = f"user:{user_id}:v2"',
    "primary key: id, foreign key: customer_id",
    "np.random.seed(20240611)",
    "reset your password at https://example.com/account/reset?lang=en",
    "getUserAccountSettingsByIdAndTenantV2Async",
    "PWD=/home/ci/project/build",
    "private key path: ~/.ssh/id_ed25519",
    "http://localhost:8080/foo@bar",
    "2FA is mandatory since March 2024",
    "the pass rate is 98%",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert REDACTOR.redact(text).text == text


def key_block(kind: str = "RSA ", *, lines: int = 4) -> str:
    """Return a fake private key block."""
    body = "\n".join(ALNUM * 2 for _ in range(lines))
    return joined("-----BEGIN ", kind, "PRIVATE", " KEY-----\n", body, "\n-----END ", kind, "PRIVATE", " KEY-----")


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_a_private_key_goes_with_every_line_of_it(kind: str) -> None:
    redaction = REDACTOR.redact(f"deploy key:\n{key_block(kind)}\nbelongs in /etc/mirror")

    assert redaction.text == "deploy key:\n[redacted:private-key]\nbelongs in /etc/mirror"


def test_a_private_key_cut_off_at_its_end_goes_as_far_as_it_reaches() -> None:
    cut = "\n".join(key_block(lines=6).splitlines()[:4])

    assert REDACTOR.redact(f"{cut}\nand then prose.").text == "[redacted:private-key]\nand then prose."


def test_a_private_key_cut_off_at_its_beginning_goes_too() -> None:
    tail = "\n".join(key_block(lines=6).splitlines()[3:])

    assert ALNUM not in REDACTOR.redact(f"tail of it\n{tail}").text


def test_the_host_of_a_connection_string_stays() -> None:
    text = REDACTOR.redact(f"use postgres://reader:{PASSWORD}@replica.internal:5432/shop for reports").text

    assert text == "use postgres://reader:[redacted:connection-password]@replica.internal:5432/shop for reports"


def test_every_occurrence_and_every_kind_is_reported_once() -> None:
    token = BY_FORM["github-token"]
    redaction = REDACTOR.redact(f"{token} and {token}, password: {PASSWORD}")

    assert redaction.text.count("[redacted:github-token]") == 2
    assert redaction.kinds == ("github-token", "password")


def test_markers_are_left_alone() -> None:
    text = "password: [redacted:password], token [redacted:github-token]"

    assert REDACTOR.redact(text).text == text


FRAGMENTS = [
    *BY_FORM.values(),
    *(sentence.replace("{}", PASSWORD) for sentence in IN_PROSE),
    *HARMLESS,
    "[redacted:password]",
    "[redacted:",
    "]",
    key_block(),
    *("password", "token", "=", ":", "is", "'", '"', "`", "(", "/", "@", "//", ".", ",", "\n"),
]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=12), max_size=8), st.sampled_from(["", " ", "\n", ":"]))
def test_redacting_twice_is_redacting_once(parts: list[str], glue: str) -> None:
    once = REDACTOR.redact(glue.join(parts)).text

    assert REDACTOR.redact(once).text == once


@given(st.text(alphabet=string.printable + "äßé密码パスワード\ud800", max_size=200))
def test_no_string_makes_it_raise(text: str) -> None:
    REDACTOR.redact(text)


def test_it_is_a_redactor() -> None:
    assert isinstance(REDACTOR, Redactor)
