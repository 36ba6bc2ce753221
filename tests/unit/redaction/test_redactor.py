"""SecretRedactor: what it takes out, what it leaves, and that a second pass changes nothing."""

from __future__ import annotations

import base64
import string
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.redaction import Redactor, SecretRedactor
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Callable

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


@check_rows("kind", BY_FORM)
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
    "password for the wifi: {}",
    "use {} as the db password",
    "{} is the admin password",
    "log in as falcon / {}",
    "password:\n{}",
    "Password:\n\n  {}\nand then prose",
    "db:\n  user: bob\n  pass: {}",
    '{{"name": "DB_PASSWORD", "value": "{}"}}',
    "- name: DB_PASSWORD\n  value: {}",
    "<password>{}</password>",
    "db.internal:5432:shop:bob:{}",
    "machine api.example login bob password {}",
    "CREATE USER bob IDENTIFIED BY '{}';",
    "ALTER ROLE bob WITH PASSWORD '{}'",
    "redis-cli -h cache -a {} ping",
    "docker login -u bob -p {} registry.example",
    "echo 'bob:{}' | chpasswd",
    "kubectl create secret generic db --from-literal=password={}",
    'conn.setPassword("{}")',
    "define('DB_PASSWORD', '{}');",
    'variable "db_password" {{\n  default = "{}"\n}}',
    "كلمة المرور هي {}",
    "पासवर्ड: {}",
    "lösenordet är {}",
    "mật khẩu wifi: {}",
    "şifremiz: {}",
    "hasło to {}",
    "la password è {}",
    "het wachtwoord is {}",
    "пароль от базы — {}",
    "비밀번호는 {} 입니다",
    "kata sandi adalah {}",
    "p\u0430ssw\u043erd: {}",
    "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44: {}",
    "p a s s w o r d : {}",
    "pass\u200bword: {}",
    "pass&#119;ord: {}",
    "user=bob%26password%3D{}%26lang%3Den",
    "the passw0rd is {}",
    "p*ssword: {}",
    "รหัสผ่านคือ {}",
    "name,user,password\nshop,bob,{}",
    "| user | password |\n|---|---|\n| bob | {} |",
    "sqlplus bob/{}@orcl",
    "ConvertTo-SecureString '{}' -AsPlainText",
    "the router wants {}",
    "bob@mail.example:{}",
]


@check_rows("sentence", IN_PROSE)
def test_a_password_that_is_named_is_removed_in_any_language(sentence: str) -> None:
    assert PASSWORD not in REDACTOR.redact(sentence.format(PASSWORD)).text


@check_rows(
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
        joined("aws_secret_access_key = ", "q7Rb/hAbl/QSlQsbeBazJ/nXS89LRe5hk5cthAoM"),
        joined("AK", "IAIOSFODNN7EXAMPLQ / ", "pgasUebRa+RxaiPQZrdrc2uqaelO5cuCJQKsOJi/"),
        joined("CLIENT_SECRET=", "550e8400-e29b-41d4", "-a716-446655440000"),
        joined("datadog key: ", HEX),
        joined("the TOTP seed is ", "JBSWY3DPEHPK3PXP"),
        joined("otpauth://totp/x:bob?secret=", "JBSWY3DPEHPK3PXP", "&issuer=x"),
        "my SSN is 521-34-1987",
        "passport number C12345678",
        "gmail app password abcd efgh ijkl mnop",
        "the password is walnut saddle ember tunnel",
        "passphrase: walnut saddle ember tunnel",
        "the password is word-12",
        "the password is #Mango12x",
        "garage keypad: 7242",
        "use 492468 as your login code",
        "setenv DB_TOKEN ef5lHWGppQ1U2F3QhbMa4FHh",
    ],
)
def test_other_secrets_that_words_give_away_are_removed(text: str) -> None:
    assert REDACTOR.redact(text).kinds


@check_rows("spelled", [str.lower, str.upper, str.title])
@check_rows(
    ("kind", "names"),
    [
        (
            "code",
            "backup code, security pin, alarm code, otp, totp, cvv2, cvc, puk, tan, voicemail pin, safe combo, pin",
        ),
        (
            "personal-number",
            "ssn, social security, itin, passport, driver's license, drivers licence, tax id, steuer-id",
        ),
        (
            "personal-number",
            "steuernummer, nino, national insurance, sozialversicherungsnummer, aadhaar, cpf, dni, nie",
        ),
        ("personal-number", "bsn, pesel, codice fiscale, nhs number, personnummer, medicare, bank account number"),
        ("personal-number", "routing number, sort code, kontonummer, rentenversicherungsnummer, account no"),
    ],
)
def test_numbers_are_removed_by_any_name_in_any_case(kind: str, names: str, spelled: Callable[[str], str]) -> None:
    """A pattern is tried only on a text that has a stem of one of its names: none may be without."""
    for name in names.split(", "):
        assert kind in REDACTOR.redact(f"{spelled(name)}: 48215973").kinds, name


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
    "Authorization: header is required for every request",
    "https://example.com/docs?key=getting-started-4",
    "https://maps.example/?key=mango-olive&zoom=12",
    "order 4539578763621486 arrived",
    "docker run -p 8080:80 nginx",
    "password: (stored in 1Password)",
    "das Passwort ist abgelaufen",
    "the passphrase should be easy to remember",
    "use the password manager as the source of truth",
    "Reset password links expire after 24 hours.",
    "updated to pass `puuid` to `summoner_id` instead",
    "try PostgreSQL16 on the NAS",
    "what has to pass: ruff, mypy, the tests",
    "$ agent-memory pin mem-0000000000a3",
    "pin: Annotated[bool, Option()] = False",
    'if key == "properties" else plain(value)',
    'key: "phase_3_completed", value: when it was done',
    "| password | strength |\n|---|---|\n| short | weak |",
    "The token bucket refills at 30 requests per second.",
    "сосна и мох растут в лесу",
    "a" + '" + "b is how code is joined',
    "data:image/png;base64,iVBORw0KGgo" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 4,
    "-----BEGIN CERTIFICATE-----\n" + ("aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 2 + "\n") * 4 + "-----END CERTIFICATE-----",
]


@check_rows("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert REDACTOR.redact(text).text == text


def key_block(kind: str = "RSA ", *, lines: int = 4) -> str:
    """Return a fake private key block."""
    body = "\n".join(ALNUM * 2 for _ in range(lines))
    return joined("-----BEGIN ", kind, "PRIVATE", " KEY-----\n", body, "\n-----END ", kind, "PRIVATE", " KEY-----")


@check_rows("text", [" ".join(map(str, range(start, start + 20, step))) for start in range(3, 90) for step in (1, 2)])
def test_redact_counted_numbers_is_not_a_card(text: str) -> None:
    assert "credit-card" not in REDACTOR.redact(text).kinds


@check_rows("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
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


@check_rows(
    ("text", "secrets"),
    [
        ("recovery codes: {}, {}, {}", ["061kr-v5xrt", "pvokr-iuisw", "3gqce-jbd0d"]),
        ("Recovery codes:\n1. {}\n2. {}\n3. {}", ["3455-6588", "7198-1202", "8640-0674"]),
        ("The passwords are {}, {} and {}.", [PASSWORD, joined("Pirate", ".2461"), joined("saddle", "#6006")]),
        ('password = "{}\\"{}"', [joined("Mango", "12"), joined("fest", "345")]),
    ],
)
def test_every_secret_of_a_list_goes(text: str, secrets: list[str]) -> None:
    left = REDACTOR.redact(text.format(*secrets)).text
    assert not [secret for secret in secrets if secret in left]


@check_rows("size", [16, 32, 48, 64, 96])
def test_a_key_in_base64_is_no_path_however_many_slashes_it_has(size: int) -> None:
    random = Random(size)
    keys = [base64.b64encode(random.randbytes(size)).decode() for _ in range(100)]
    assert not [key for key in keys if key in REDACTOR.redact(f"SECRET_KEY={key}").text]


def encoded(secret: str) -> dict[str, str]:
    assignment = f"password={secret}"
    return {
        "base64": base64.b64encode(assignment.encode()).decode(),
        "hex": assignment.encode().hex(),
        "percent": "".join(f"%{byte:02x}" for byte in assignment.encode()),
        "unicode": "".join(f"\\u{ord(letter):04x}" for letter in assignment),
        "wide": "".join(chr(ord(letter) + 0xFEE0) for letter in assignment),
    }


@check_rows("encoding", encoded(""))
def test_what_is_encoded_goes_as_a_whole(encoding: str) -> None:
    hidden = encoded(PASSWORD)[encoding]
    left = REDACTOR.redact(f"the line was {hidden} yesterday").text
    assert hidden[-12:] not in left
    assert left.startswith("the line was ")
    assert left.endswith(" yesterday")


def test_a_token_with_an_invisible_letter_in_it_goes_whole() -> None:
    token = BY_FORM["github-token"]
    left = REDACTOR.redact(f"we use {token[:9]}\u200b{token[9:]} here").text
    assert left == "we use [redacted:github-token] here"


def test_a_private_key_in_one_line_of_base64_goes() -> None:
    line = base64.b64encode(key_block(lines=12).encode()).decode()
    assert REDACTOR.redact(f"key: {line}").text == "key: [redacted:private-key]"


def test_settings_below_a_password_stay() -> None:
    text = f"DB_PASSWORD={PASSWORD}\nMAIL_FROM=noreply2@kestrel.example\nDAYS=30\nlegacy/run.sh:23:mysql -h db"
    assert REDACTOR.redact(text).text == text.replace(PASSWORD, "[redacted:password]")


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


@check_rows(
    ("table", "cleaned"),
    [
        ("host|password\nanna|hunter29\nbob|later", "host|password\nanna|[redacted:password]\nbob|later"),
        ("host|owner|password\nmail|Ops|none\nweb|Dev|later", "host|owner|password\nmail|Ops|none\nweb|Dev|later"),
        ("> host|password\n> mail|sunshine", "> host|password\n> mail|[redacted:password]"),
        ("host;password\nanna;hunter29", "host;password\nanna;[redacted:password]"),
        ("host|password\n---|---\nanna|hunter29", "host|password\n---|---\nanna|[redacted:named-secret]"),
        ("password\nanna|hunter29", "password\n[redacted:password]"),
        ("wifi; the password\nanna;hunter29", "wifi; the password\n[redacted:password]"),
        ("host|password\nanna|hunter|29", "host|password\n[redacted:password]"),
    ],
)
def test_heading_row_is_a_label_of_its_column_alone(table: str, cleaned: str) -> None:
    assert SecretRedactor().redact(table).text == cleaned


def test_redact_table_cut_by_a_secret_is_searched_whole() -> None:
    plain = "Plain words about nothing, line by line.\n\n" * 500
    rows = [f"anna{number}|apfel{number % 10}|x" for number in range(1_500)]
    table = "\n".join(["name|password|id", *rows[:750], "bob|https://u:Zq9!|xK2@host.org|x", *rows[750:]])
    cleaned = SecretRedactor().redact(f"{plain}{table}\n\n{plain}").text
    assert "apfel" not in cleaned
    assert cleaned.startswith(plain)
    assert cleaned.endswith(plain)


def test_redact_long_text_equals_its_parts() -> None:
    plain = "Plain words about nothing, line by line.\n\n" * 500
    for part in ("pwd=ghp_16C7e42F292c6912E7710c838347Ae178B4a, hunter2xX", "%70assword: Zq9!xK2aa or apfel23"):
        cleaned = SecretRedactor().redact(f"{plain}{part}\n\n{plain}").text
        assert cleaned == f"{plain}{SecretRedactor().redact(part).text}\n\n{plain}"
