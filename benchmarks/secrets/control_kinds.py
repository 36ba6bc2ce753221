"""Kinds of secrets written after the redactor was tuned on `tuning_kinds` and `statement_kinds`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from benchmarks.secrets.frames import WORDS, Kind, Planted, around, fill, key_lines, letters, many, strong, token

if TYPE_CHECKING:
    import random

MAIN, RARE, CONF, CODE, LINE = "provider, main", "provider, rarer", "configuration", "codes", "command line"
STRONG, PLAIN, BARE = "passwords, strong", "passwords, letters", "passwords, no label"
HIDDEN, ENCODED, LINKS, NUMBERS, NAMES = "obfuscated", "encoded", "connection strings", "numbers", "environment"


def _quoted(rng: random.Random) -> Planted:
    lines = key_lines(rng, 5)
    rows = ["-----BEGIN DSA PRIVATE" + " KEY-----", *lines, "-----END DSA PRIVATE" + " KEY-----"]
    return Planted("\n".join(f'"{row}\\n" +' for row in rows), tuple(lines))


def _one_line(rng: random.Random) -> Planted:
    body = fill("{b320}", rng)
    return Planted(f"-----BEGIN PRIVATE KEY----- {body} -----END PRIVATE KEY-----", (body[40:200],))


def _form(rng: random.Random) -> Planted:
    secret = quote_plus(strong(rng))
    return Planted(f"grant_type=password&username={rng.choice(WORDS)}&password={secret}&scope=all", (secret,))


def _json_base64(rng: random.Random) -> Planted:
    text = f'{{"auth": {{"user": "bob", "password": "{strong(rng)}"}}}}'
    line = base64.b64encode(text.encode()).decode()
    return Planted(f"docker config: {line}", (line,))


def _wrapped(rng: random.Random) -> Planted:
    text = f"[default]\naws_secret_access_key = {fill('{b40}', rng)}\n" + f"# {rng.choice(WORDS)} " * 20
    line = base64.b64encode(text.encode()).decode()
    rows = [line[at : at + 64] for at in range(0, len(line), 64)]
    return Planted("\n".join(["credentials:", *rows]), tuple(rows[:2]))


def _url_base64(rng: random.Random) -> Planted:
    line = base64.urlsafe_b64encode(f"api_token: {fill('{a32}', rng)}".encode()).decode().rstrip("=")
    return Planted(f"the state parameter was {line}", (line,))


def _octal(rng: random.Random) -> Planted:
    worn = "".join(f"\\x{ord(letter):02x}" for letter in f"pwd={strong(rng)}")
    return Planted(f"printf '{worn}'", (worn,))


def _soft_hyphen(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"pass\u00adword: {secret}", (secret,))


def _math(rng: random.Random) -> Planted:
    secret = strong(rng)
    word = "".join(chr(0x1D41A + ord(letter) - ord("a")) for letter in "password")
    return Planted(f"{word} is {secret}", (secret,))


def _reversed(rng: random.Random) -> Planted:
    worn = fill("ghp_{a36}", rng)[::-1]
    return Planted(f"reversed token: {worn}", (worn,))


LAST: Final[tuple[Kind, ...]] = (
    token(MAIN, "fine-grained GitHub", "github_pat_11{A20}_{a59}"),
    token(MAIN, "Groq", "gsk_{a52}"),
    token(MAIN, "xAI", "xai-{a80}"),
    token(MAIN, "Vercel blob", "vercel_blob_rw_{a16}_{a30}"),
    around(MAIN, "Gemini", "GEMINI_API_KEY: {S}", "gemini key {S}", value="AQ.{u50}"),
    around(MAIN, "Cohere", "co = cohere.Client('{S}')", "cohere api key: {S}", value="{a40}"),
    around(MAIN, "Azure OpenAI", "azure openai key {S}", "AZURE_OPENAI_API_KEY={S}", value="{h32}"),
    around(MAIN, "AWS config", "secret access key: {S}", "aws secret {S}", value="{b40}"),
    token(RARE, "Buildkite", "bkua_{h40}"),
    token(RARE, "LangSmith", "lsv2_pt_{h32}_{h10}"),
    token(RARE, "Pulumi", "pul-{h40}"),
    token(RARE, "Contentful", "CFPAT-{u43}"),
    token(RARE, "Typeform", "tfp_{u44}_{u14}"),
    token(RARE, "Square", "sq0atp-{u22}"),
    token(RARE, "Discord", "MT{a24}.G{a5}.{u38}"),
    token(RARE, "Adafruit", "aio_{a28}"),
    around(RARE, "Mapbox", "mapbox: {S}", value="sk.eyJ1{a60}.{u22}"),
    around(RARE, "Sonar", "sonar token {S}", "SONAR_TOKEN={S}", value="{h40}"),
    around(RARE, "Firebase", "FCM server key {S}", value="AAAA{u7}:APA91b{u134}"),
    around(RARE, "OpenWeather", "appid={S}", "openweathermap key {S}", value="{h32}"),
    around(RARE, "Zoom", "zoom client secret {S}", value="{a32}"),
    Kind("PEM", "string literals", _quoted),
    Kind("PEM", "in one line", _one_line),
    around(LINKS, "clickhouse", "clickhouse://{w}:{S}@ch:9000/{w}", "mssql+pyodbc://sa:{S}@db/{w}"),
    around(LINKS, "smtp", "smtps://{w}%40{w}.io:{S}@mail.{w}.io:465", value="{a14}"),
    around(LINKS, "Oracle", "sqlplus {w}/{S}@orcl", "jdbc:oracle:thin:{w}/{S}@db:1521:orcl", value="{W}{d4}x"),
    around(LINKS, "DSN", "Driver=ODBC;Uid={w};Pwd={S};Database={w}"),
    around(CONF, "Ansible", "ansible_become_pass: {S}", "vault_db_password: '{S}'"),
    around(CONF, "Helm", "auth:\n  rootPassword: {S}\n", "adminPassword: {S}"),
    around(CONF, "properties", "mail.smtp.pass={S}", "keystore.password={S}"),
    around(CONF, "htpasswd", "{w}:{S}", value="$apr1${a8}${a22}"),
    around(CONF, "Ruby", ':password => "{S}",', 'password: "{S}",'),
    around(CONF, "JavaScript", "const dbPass = '{S}';", "auth: { user: '{w}', pass: '{S}' }"),
    around(CONF, "CSV", "name,username,password\n{w},{w},{S}"),
    around(LINE, "mongosh", 'mongosh "mongodb://db" -u {w} -p {S}', "mysqldump --password={S} {w}"),
    around(LINE, "wget", "wget --http-password={S} https://{w}.io/x", "lftp -u {w},{S} ftp://{w}.io"),
    around(LINE, "gh", "echo {S} | gh auth login --with-token", "npm login --token {S}", value="{a40}"),
    around(LINE, "ansible", "ansible-playbook site.yml -e db_password={S}", "terraform apply -var 'db_password={S}'"),
    around(LINE, "PowerShell", "ConvertTo-SecureString '{S}' -AsPlainText -Force", "$env:DB_PASSWORD = '{S}'"),
    around(LINE, "7z", "7z x -p{S} backup.7z", "unzip -P {S} {w}.zip"),
    around(NAMES, "fish", "set -x API_TOKEN {S}", "setenv DB_PASSWORD {S}", value="{a24}"),
    around(NAMES, "docker", "docker run -e DB_PASSWORD={S} {w}", "ENV SECRET_TOKEN={S}", value="{a20}"),
    around(CODE, "invite", "invite code: {S}", "the activation code is {S}", value="{A4}-{A4}-{d4}"),
    around(CODE, "lock", "locker combination {S}", "bike lock code {S}", value="{d4}"),
    around(CODE, "sms", "G-{S} is your Google verification code", "use {S} as your login code", value="{d6}"),
    many(CODE, "bulleted", "backup codes:\n- {}", lambda rng: fill("{l4}{d2}{l4}", rng), 5, "\n- "),
    around(STRONG, "cs fi da", "heslo je {S}", "salasana on {S}", "adgangskoden er {S}"),
    around(
        STRONG,
        "el he fa",
        "\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc\u03c2: {S}",
        "\u05d4\u05e1\u05d9\u05e1\u05de\u05d4 \u05d4\u05d9\u05d0 {S}",
    ),
    around(STRONG, "th", "\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19\u0e04\u0e37\u0e2d {S}"),
    around(STRONG, "ro hu", "parola este {S}", "a jelsz\u00f3 {S}"),
    around(
        STRONG,
        "asides",
        "password (new one!): {S}",
        "pw = `{S}`",
        "pass: {S} (expires in May)",
        "Password \u2013 {S}",
        "the admin password got changed, it is now {S}",
        "password of the NAS is still {S}, sorry",
    ),
    around(STRONG, "table", "| user | password |\n|---|---|\n| {w} | {S} |", "user: {w}  password: {S}"),
    around(PLAIN, "asides", "the password was {S} until May", "pass: {S}", "our password is {S}!", value=letters),
    around(PLAIN, "quoted", 'the password is "{S}"', "password '{S}' works", value=letters),
    around(PLAIN, "nl sv", "het wachtwoord is {S}", "l\u00f6senordet \u00e4r {S}", value=letters),
    around(PLAIN, "five words", "passphrase is {w} {S} {w} {w} {w}", value="{w}"),
    around(BARE, "mention", "try {S} on the NAS", "it's {S} for the camera", "the NAS opens with {S}"),
    around(BARE, "pair", "{w} : {S}", "login: {w} {S}", "admin // {S}"),
    around(NUMBERS, "amex", "my amex is 3782 822463 10005 {S}", value="{d4}"),
    around(NUMBERS, "SSN by other words", "social: {S}", "SSN {S} on file", value="4{d2}-5{d1}-{d4}"),
    around(NUMBERS, "IBAN without the word", "pay to {S}", value="GB82 WEST 1234 5698 7654 32"),
    Kind(HIDDEN, "soft hyphen", _soft_hyphen),
    Kind(HIDDEN, "mathematical letters", _math),
    Kind(HIDDEN, "reversed", _reversed),
    around(HIDDEN, "masked word", "p*ssword: {S}", "pa$$word: {S}", "pass word is {S}", "psswrd: {S}"),
    Kind(ENCODED, "form", _form),
    Kind(ENCODED, "JSON", _json_base64),
    Kind(ENCODED, "wrapped", _wrapped),
    Kind(ENCODED, "URL safe", _url_base64),
    Kind(ENCODED, "bytes", _octal),
)
