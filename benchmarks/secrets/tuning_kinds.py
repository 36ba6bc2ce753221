"""Kinds of secrets that the redactor was tuned on."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from benchmarks.secrets.frames import Kind, Planted, around, fill, key_lines, letters, many, strong, token

if TYPE_CHECKING:
    import random

MAIN, RARE, CONF, CODE = "provider, main", "provider, rarer", "configuration", "codes"
STRONG, PLAIN, HIDDEN, ENCODED = "passwords, strong", "passwords, letters", "obfuscated", "encoded"


def _pem(rng: random.Random) -> Planted:
    lines = key_lines(rng)
    kind = rng.choice(("RSA ", "EC ", "OPENSSH ", ""))
    begin, end = f"-----BEGIN {kind}PRIVATE" + " KEY-----", f"-----END {kind}PRIVATE" + " KEY-----"
    return Planted("\n".join(["the deploy key:", begin, *lines, end, "keep it"]), tuple(lines))


def _headless(rng: random.Random) -> Planted:
    lines = key_lines(rng, 8)
    return Planted("\n".join(["rest of the private key:", *lines, "-----END RSA PRIVATE" + " KEY-----"]), tuple(lines))


def _pem_escaped(rng: random.Random) -> Planted:
    lines = key_lines(rng)
    body = "\\n".join(["-----BEGIN PRIVATE" + " KEY-----", *lines, "-----END PRIVATE" + " KEY-----"])
    return Planted(f'{{"type": "service_account", "private_key": "{body}\\n"}}', tuple(lines))


def _pem_encoded(rng: random.Random) -> Planted:
    lines = "\n".join(
        ["-----BEGIN RSA PRIVATE" + " KEY-----", *key_lines(rng, 12), "-----END RSA PRIVATE" + " KEY-----"]
    )
    line = base64.b64encode(lines.encode()).decode()
    return Planted(f"ssh key of the runner, encoded: {line}", (line, line[200:260], line[-80:-20]))


def _lookalike(rng: random.Random) -> Planted:
    secret = strong(rng)
    word = rng.choice(
        ("p\u0430ssword", "passw\u043erd", "p\u0430ssw\u043erd", "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44")
    )
    return Planted(f"the {word} is {secret}", (secret,))


def _zero_width(rng: random.Random) -> Planted:
    token_ = fill("ghp_{a36}", rng)
    cut = rng.randrange(8, 30)
    worn = token_[:cut] + rng.choice("\u200b\u200d\u2060\u00ad\ufeff") + token_[cut:]
    return Planted(f"we deploy with {worn} now", (worn, token_[cut:]))


def _encoded_assignment(rng: random.Random) -> Planted:
    line = base64.b64encode(f"password={strong(rng)}".encode()).decode()
    return Planted(f"the config in base64: {line}", (line,))


def _hex_assignment(rng: random.Random) -> Planted:
    line = f"DB_PASSWORD={strong(rng)}".encode().hex()
    return Planted(f"hex dump {line} of the env", (line,))


def _percent(rng: random.Random) -> Planted:
    secret = quote(strong(rng), safe="")
    return Planted(f"callback?user=bob%26password%3D{secret}%26lang%3Den", (secret,))


def _escaped_quote(rng: random.Random) -> Planted:
    first, second = fill("{W}{d2}", rng), fill("{w}{d3}", rng)
    return Planted(f'password = "{first}\\"{second}"', (first, second))


FIRST: Final[tuple[Kind, ...]] = (
    token(MAIN, "GitHub", "ghp_{a36}", "gho_{a36}", "github_pat_{a22}_{a59}"),
    token(MAIN, "OpenAI", "sk-proj-{u48}", "sk-{a48}"),
    token(MAIN, "Anthropic", "sk-ant-api03-{u93}AA"),
    token(MAIN, "Slack", "xoxb-{d12}-{d12}-{a24}", "xapp-1-A{A10}-{d13}-{h64}"),
    token(MAIN, "Stripe", "sk_live_{a24}", "rk_test_{a99}"),
    token(MAIN, "AWS id", "AKIA{317}"),
    around(
        MAIN,
        "AWS secret",
        "aws_secret_access_key = {S}",
        "the AWS secret access key is {S}",
        "AWS_SECRET_ACCESS_KEY={S}",
        "AKIA{316} / {S}",
        value="{b40}",
    ),
    around(MAIN, "AWS session", "aws_session_token = {S}", "AWS_SESSION_TOKEN={S}", value="IQoJb3JpZ2lu{b180}=="),
    around(
        MAIN,
        "Azure DevOps",
        "Azure DevOps PAT: {S}",
        "the azure devops personal access token is {S}",
        "AZURE_DEVOPS_EXT_PAT={S}",
        value="{l52}",
    ),
    token(MAIN, "Google", "AIza{u35}", "GOCSPX-{u28}"),
    token(MAIN, "npm", "npm_{a36}"),
    token(MAIN, "SendGrid", "SG.{u22}.{u43}"),
    token(MAIN, "JWT", "eyJhbGciOiJIUzI1NiJ9.eyJ{u60}.{u43}"),
    token(RARE, "Dropbox", "sl.{u130}", "sl.B{u60}"),
    around(RARE, "Datadog", "datadog api key {S}", "DD_API_KEY={S}", "our Datadog key: {S}", value="{h32}"),
    around(RARE, "Cloudflare", "cloudflare global key: {S}", "CF_API_KEY={S}", value="{h37}"),
    around(RARE, "Heroku", "heroku api key {S}", "HEROKU_API_KEY={S}", value="{uuid}"),
    token(RARE, "Linear", "lin_api_{a40}"),
    token(RARE, "Doppler", "dp.pt.{a43}"),
    token(RARE, "Supabase", "sbp_{h40}"),
    token(RARE, "PlanetScale", "pscale_tkn_{u43}"),
    token(RARE, "HashiCorp", "hvs.{u90}", "{a14}.atlasv1.{u67}"),
    Kind("PEM", "block", _pem),
    Kind("PEM", "headless", _headless),
    Kind("PEM", "in JSON", _pem_escaped),
    around("connection strings", "postgres", "postgres://{w}:{S}@db.internal:5432/{w}"),
    around("connection strings", "mongodb", "mongodb+srv://{w}:{S}@cluster0.{l5}.mongodb.net/prod", value="{a16}"),
    around("connection strings", "redis", "redis://:{S}@cache:6379/0", value="{a20}"),
    around(
        "connection strings",
        "ADO",
        "Server=tcp:{w}.database.windows.net;User ID={w};Password={S};Encrypt=True",
        value="{a16}",
    ),
    around(CONF, ".pgpass", "db.internal:5432:{w}:{w}:{S}", "*:*:*:{w}:{S}"),
    around(CONF, "XML", "<password>{S}</password>", '<add key="DbPassword" value="{S}"/>', value="{W}{d4}x{a4}"),
    around(
        CONF,
        "name and value",
        '{{"name": "DB_PASSWORD", "value": "{S}"}}'.replace("{{", "{").replace("}}", "}"),
        "- name: API_TOKEN\n  value: {S}",
        value="{a20}",
    ),
    around(CONF, "YAML", "db:\n  user: {w}\n  pass: {S}", "sshKey: {S}", value="{a18}"),
    around(CONF, "netrc", "machine api.{w}.io login {w} password {S}"),
    around(
        "command line",
        "SQL",
        "CREATE USER {w} IDENTIFIED BY '{S}';",
        "ALTER USER {w} WITH PASSWORD '{S}';",
        value="{w}{w}",
    ),
    around("command line", "mysql", "mysql -h db -u root -p{S} {w}", value="{a12}"),
    around("command line", "redis-cli", "redis-cli -h cache -a {S} ping", value="{a16}"),
    around("command line", "curl", "curl -u {w}:{S} https://api.{w}.io", value="{a14}"),
    around(
        "environment",
        "names",
        "export SMTP_PASS={S}",
        "STRIPE_WEBHOOK_SECRET={S}",
        "JWT_SIGNING_KEY={S}",
        "DJANGO_SECRET_KEY={S}",
        "SESSION_SECRET={S}",
        value="{bytes32}",
    ),
    around("environment", "UUID", "CLIENT_SECRET={S}", "API_KEY={S}", "AUTH_TOKEN={S}", value="{uuid}"),
    many(CODE, "recovery codes", "recovery codes: {}", lambda rng: fill("{l5}-{l5}", rng), 5, ", "),
    many(CODE, "backup codes", "GitHub backup codes\n{}", lambda rng: fill("{h5}-{h5}", rng), 6, "\n"),
    around(
        CODE,
        "TOTP",
        "the TOTP seed is {S}",
        "authenticator secret {S}",
        "otpauth://totp/{w}:bob?value={S}&issuer={w}",
        value="{332}",
    ),
    around(CODE, "PIN", "the PIN is {S}", "door code: {S}", "PIN for the safe is {S}", value="{d5}"),
    around(
        STRONG,
        "en",
        "the password is {S}",
        "password: {S}",
        "password for the wifi: {S}",
        "use {S} as the db password",
        "{S} is the admin password",
        "log in with {w} and password {S}",
    ),
    around(STRONG, "de", "das Passwort ist {S}", "Passwort f\u00fcr den Server: {S}", "Kennwort lautet {S}"),
    around(STRONG, "fr", "le mot de passe est {S}", "mot de passe du wifi : {S}"),
    around(STRONG, "es", "la contrase\u00f1a es {S}", "contrase\u00f1a del servidor: {S}"),
    around(
        STRONG,
        "ar",
        "\u0643\u0644\u0645\u0629 \u0627\u0644\u0645\u0631\u0648\u0631 \u0647\u064a {S}",
        "\u0643\u0644\u0645\u0629 \u0627\u0644\u0633\u0631: {S}",
    ),
    around(
        STRONG,
        "hi",
        "\u092a\u093e\u0938\u0935\u0930\u094d\u0921 {S} \u0939\u0948",
        "\u092a\u093e\u0938\u0935\u0930\u094d\u0921: {S}",
    ),
    around(STRONG, "sv", "l\u00f6senordet \u00e4r {S}", "l\u00f6senord till servern: {S}"),
    around(STRONG, "vi", "m\u1eadt kh\u1ea9u l\u00e0 {S}", "m\u1eadt kh\u1ea9u wifi: {S}"),
    around(
        STRONG, "ja", "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f{S}\u3067\u3059", "\u30d1\u30b9\u30ef\u30fc\u30c9\uff1a{S}"
    ),
    many(STRONG, "several", "The passwords are {}.", strong, 3, ", "),
    around(
        PLAIN, "en", "the password is {S}", "password: {S}", "pw={S}", "the wifi password is {S} now", value=letters
    ),
    around(PLAIN, "four words", "the password is {w} {S} {w} {w}", "passphrase: {w} {w} {S} {w}", value="{w}"),
    around(PLAIN, "de", "das Passwort ist {S}.", "Passwort: {S}", value=letters),
    around(PLAIN, "next line", "password:\n{S}", "Password:\n\n  {S}\n", value=letters),
    around(
        "passwords, no label",
        "login",
        "log in as {w} / {S}",
        "admin:{S} on the router",
        "ssh {w}@build, then {S}",
        value=strong,
    ),
    around("numbers", "card", "the company card is 4{d3} {S} {d4} {d4}", value="{d4}"),
    around("numbers", "SSN", "my SSN is {S}", "social security number: {S}", value="5{d2}-4{d1}-1{d3}"),
    around("numbers", "IBAN", "IBAN {S}", value="DE89 3704 0044 0532 0130 00"),
    Kind(HIDDEN, "lookalike keyword", _lookalike),
    Kind(HIDDEN, "zero width", _zero_width),
    around(HIDDEN, "next line", "password:\n{S}", "the password:\n  {S}\nis for staging"),
    Kind(HIDDEN, "escaped quote", _escaped_quote),
    Kind(ENCODED, "base64 assignment", _encoded_assignment),
    Kind(ENCODED, "hex assignment", _hex_assignment),
    Kind(ENCODED, "percent", _percent),
    Kind(ENCODED, "PEM", _pem_encoded),
)
