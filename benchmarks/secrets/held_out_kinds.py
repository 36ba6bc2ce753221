"""Kinds of secrets written after tuning on all other lots, before the redactor was tried on any of them."""

# ruff: noqa: E501 - one kind a line
from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from benchmarks.secrets.frames import (
    GROUPS,
    WORDS,
    Kind,
    Planted,
    around,
    fill,
    key_lines,
    letters,
    many,
    strong,
    token,
)

if TYPE_CHECKING:
    import random

MAIN, RARE, PEM, LINKS, CONF, LINE, NAMES, CODE, STRONG, PLAIN, BARE, NUMBERS, HIDDEN, ENCODED = GROUPS


def _made(rng: random.Random) -> str:
    """Return a password as a manager of passwords makes it."""
    return "".join(rng.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#%&*+-=?@", k=16))


def _quoted_key(rng: random.Random) -> Planted:
    lines = key_lines(rng, 5)
    rows = ["-----BEGIN OPENSSH PRIVATE" + " KEY-----", *lines, "-----END OPENSSH PRIVATE" + " KEY-----"]
    return Planted("\n".join(f"> {row}" for row in rows), tuple(lines))


def _key_in_code(rng: random.Random) -> Planted:
    lines = key_lines(rng, 4)
    rows = ["-----BEGIN PRIVATE" + " KEY-----", *lines, "-----END PRIVATE" + " KEY-----"]
    return Planted("key = (\n" + "\n".join(f'    "{row}\\n"' for row in rows) + "\n)", tuple(lines))


def _putty(rng: random.Random) -> Planted:
    lines = key_lines(rng, 4)
    head = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAAC3Nza\nPrivate-Lines: 4\n"
    return Planted(head + "\n".join(lines) + f"\nPrivate-MAC: {fill('{h64}', rng)}", tuple(lines))


def _jwks(rng: random.Random) -> Planted:
    d = fill("{u86}", rng)
    return Planted(json.dumps({"keys": [{"kty": "RSA", "n": fill("{u86}", rng), "e": "AQAB", "d": d}]}), (d,))


def _wide_table(rng: random.Random) -> Planted:
    rows = [(rng.choice(WORDS), rng.choice(WORDS), strong(rng)) for _ in range(3)]
    body = "\n".join(f"| {a} | {b} | {c} |" for a, b, c in rows)
    return Planted(f"| Service | Benutzername | Passwort |\n|---|---|---|\n{body}", tuple(c for *_, c in rows))


def _vault(rng: random.Random) -> Planted:
    first, second = strong(rng), fill("{a24}", rng)
    text = f"====== Data ======\nKey         Value\n---         -----\npassword    {first}\napi_key     {second}\n"
    return Planted(text, (first, second))


def _compose(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(
        f"services:\n  db:\n    environment:\n      - POSTGRES_USER=app\n      - POSTGRES_PASSWORD={secret}\n",
        (secret,),
    )


def _har(rng: random.Random) -> Planted:
    secret = fill("{a40}", rng)
    return Planted(json.dumps({"headers": [{"name": "X-Api-Key", "value": secret}]}), (secret,))


def _tfstate(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(
        json.dumps({"type": "aws_db_instance", "attributes": {"username": "root", "password": secret}}, indent=1),
        (secret,),
    )


def _grid(rng: random.Random) -> Planted:
    codes = [fill("{d5} {d5}", rng) for _ in range(6)]
    body = "\n".join("    ".join(codes[at : at + 2]) for at in (0, 2, 4))
    return Planted(f"Save your backup codes\n\n{body}", tuple(codes))


def _words(rng: random.Random) -> Planted:
    words = rng.sample(WORDS, 24)
    return Planted("mnemonic: " + " ".join(words), (" ".join(words[3:9]),))


def _dotted(rng: random.Random) -> Planted:
    secret = fill("{W}{w}{d3}", rng)
    return Planted(f"password is {'-'.join(secret)}", ("-".join(secret),))


def _tagged(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted("pass" + "\u200c" + "word: " + "\u200b".join(secret), ("\u200b".join(secret),))


def _cyrillic(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"my \u0440\u0430ss\u0440hr\u0430s\u0435: {secret}", (secret,))


def _split_concatenation(rng: random.Random) -> Planted:
    first, second = fill("sk_live_{a12}", rng), fill("{a16}", rng)
    return Planted(f"const k = '{first}' + '{second}';", (first, second))


def _encoded_header(rng: random.Random) -> Planted:
    line = base64.b64encode(f"{rng.choice(WORDS)}:{_made(rng)}".encode()).decode()
    return Planted(f"curl -H 'Authorization: Basic {line}' https://x.io", (line,))


def _encoded_yaml(rng: random.Random) -> Planted:
    text = f"db:\n  host: db.internal\n  user: app\n  password: {strong(rng)}\n"
    line = base64.b64encode(text.encode()).decode()
    return Planted(f"config.yaml as base64:\n{line}", (line,))


def _encoded_in_url(rng: random.Random) -> Planted:
    secret = quote(_made(rng), safe="")
    return Planted(f"https://x.io/cb?user=a&pass%77ord={secret}", (secret,))


def _escaped_json(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(json.dumps(json.dumps(json.dumps({"password": secret}))), (secret,))


def _hex_of_pair(rng: random.Random) -> Planted:
    line = f"user=admin&password={strong(rng)}".encode().hex()
    return Planted(f"payload 0x{line}", (line,))


UNMET: Final[tuple[Kind, ...]] = (
    token(MAIN, "GitHub in a remote", "ghp_{a36}", frames=("https://{}@github.com/x/y.git", "git push https://x-access-token:{}@github.com/x/y")),
    token(MAIN, "OpenAI in code", "sk-proj-{u100}", frames=('OpenAI(api_key="{}")', "openai.api_key = '{}'")),
    token(MAIN, "Anthropic", "sk-ant-api03-{u90}AA", "sk-ant-admin01-{u90}AA"),
    token(MAIN, "Stripe restricted", "rk_live_{a24}", "sk_test_51{a97}"),
    token(MAIN, "GitLab deploy", "gldt-{u20}", "glpat-{u27}.01.{l9}"),
    around(MAIN, "AWS by table", "| Access key ID | Secret access key |\n|---|---|\n| AKIA{A16} | {S} |", "Access Key: AKIA{A16}\nSecret: {S}", value="{b40}"),
    around(MAIN, "AWS in PowerShell", 'Set-AWSCredential -AccessKey AKIA{A16} -SecretKey "{S}"', "$Env:AWS_SECRET_ACCESS_KEY='{S}'", value="{b40}"),
    around(MAIN, "Azure keys", "cognitive services key1: {S}", "AZURE_OPENAI_KEY={S}", "azure maps subscription key is {S}", value="{h32}"),
    around(MAIN, "GCP OAuth", '"client_secret":"{S}"', "oauth secret: {S}", value="GOCSPX-{u28}"),
    around(RARE, "Bearer of a house", "Home Assistant long-lived token: {S}", "HASS_TOKEN={S}", value="eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{u120}.{u43}"),
    around(RARE, "Jenkins", "jenkins api token 11{S}", "curl -u bob:11{S} https://ci.{w}.io/job/x/build", value="{h32}"),
    around(RARE, "Sonar", "sonar token squ_{S}", "-Dsonar.login={S}", value="{h40}"),
    around(RARE, "Nexus and Harbor", "robot$ci / {S}", "harbor robot secret: {S}", value="{a32}"),
    around(RARE, "New Relic", "NEW_RELIC_LICENSE_KEY={S}", "newrelic licence key {S}", value="{h36}NRAL"),
    around(RARE, "Splunk", "Authorization: Splunk {S}", "HEC token {S}", value="{uuid}"),
    around(RARE, "Zoom and Webex", "zoom client secret {S}", "webex bot token: {S}", value="{a64}"),
    around(RARE, "Mastodon", "mastodon access token: {S}", "MASTODON_TOKEN={S}", value="{u43}"),
    around(RARE, "Matrix", "syt_{S}_{a20}_{a6}", "matrix access token is syt_{S}", value="{a24}"),
    around(RARE, "Strava and Fitbit", "strava client_secret={S}", "fitbit secret is {S}", value="{h40}"),
    around(RARE, "weather station", "ecowitt application key {S}", "wunderground key: {S}", value="{A32}"),
    token(RARE, "Supabase", "sb_secret_{u31}", "sbp_{h40}"),
    token(RARE, "Vercel", "vcp_{a56}", "vercel_blob_rw_{a16}_{a30}"),
    token(RARE, "Cerebras and others", "csk-{l48}", "fw_{a24}", "r8_{a37}", "together_{h64}"),
    token(RARE, "made up prefix", "acme_sk_{a32}", "tok-{a40}", "zx1.{u48}"),
    Kind(PEM, "quoted", _quoted_key),
    Kind(PEM, "in code", _key_in_code),
    Kind(PEM, "PuTTY", _putty),
    Kind(PEM, "JWKS", _jwks),
    around(LINKS, "Oracle", "jdbc:oracle:thin:{w}/{S}@//db:1521/x", "sqlplus {w}/{S}@db", value="{a12}"),
    around(LINKS, "Redis in settings", 'CACHES = {"default": "redis://default:{S}@cache:6379/1"}', "REDIS_URL=rediss://:{S}@{w}.upstash.io:6379", value="{a24}"),
    around(LINKS, "Mongo with signs", "mongodb://{w}:{S}@a:27017,b:27017/x?replicaSet=r", value="{a6}%21{a6}"),
    around(LINKS, "Service Bus", "Endpoint=sb://{w}.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={S}", value="{b43}="),
    around(LINKS, "RTSP camera", "rtsp://admin:{S}@192.168.1.{d2}:554/stream1", "http://192.168.1.{d2}/snap?usr=admin&pwd={S}"),
    around(LINKS, "SAS link", "https://{w}.blob.core.windows.net/x?sv=2024-01-01&sig={S}", value="{a30}%2B{a10}%3D"),
    around(LINKS, "key and value in C#", 'new SqlConnection("Server=db;Database=x;User Id=sa;Password={S};")', value="{a14}"),
    Kind(CONF, "table in German", _wide_table),
    Kind(CONF, "output of vault", _vault),
    Kind(CONF, "compose", _compose),
    Kind(CONF, "HAR", _har),
    Kind(CONF, "state of terraform", _tfstate),
    around(CONF, "Spring", "spring:\n  datasource:\n    username: {w}\n    password: {S}\n", "spring.mail.password={S}"),
    around(CONF, "PHP array", "'password' => '{S}',", '"db_pass" => "{S}"'),
    around(CONF, "Ruby", 'password: "{S}", host: "db"', ":password => '{S}'", "ENV['API_TOKEN'] = '{S}'"),
    around(CONF, "wpa_supplicant", 'network={\n  ssid="{w}"\n  psk="{S}"\n}', value="{w}{w}{d2}"),
    around(CONF, "Cisco", "enable secret {S}", "username admin privilege 15 password 0 {S}", "snmp-server community {S} RO"),
    around(CONF, "Samba", "username={w}\npassword={S}\ndomain=WORK"),
    around(CONF, "Kafka client", "ssl.keystore.password={S}", "ssl.key.password = {S}"),
    around(CONF, "Emacs and vim", 'machine imap.{w}.io login {w} password "{S}"', "let g:db_password = '{S}'"),
    around(LINE, "ssh", "sshpass -p '{S}' ssh root@10.0.0.{d1}", "SSHPASS={S} sshpass -e ssh x@y"),
    around(LINE, "mongo", "mongosh -u admin -p '{S}' --authenticationDatabase admin", "mongodump --password={S} -u x"),
    around(LINE, "restic", "RESTIC_PASSWORD={S} restic backup /home", "export BORG_PASSPHRASE='{S}'"),
    around(LINE, "PowerShell", "ConvertTo-SecureString '{S}' -AsPlainText -Force", 'New-LocalUser bob -Password (ConvertTo-SecureString "{S}" -AsPlainText -Force)'),
    around(LINE, "MySQL prompt", "SET PASSWORD FOR 'x'@'%' = '{S}';", "ALTER USER 'x'@'%' IDENTIFIED WITH caching_sha2_password BY '{S}';"),
    around(LINE, "keyring and pass", "echo '{S}' | pass insert -e mail/{w}", "secret-tool store --label=x <<< {S}"),
    around(LINE, "curl with JSON", "curl -d '{\"user\":\"{w}\",\"password\":\"{S}\"}' https://x.io", "http POST x.io/login username={w} password={S}"),
    around(LINE, "7z and zip", "7z x backup.7z -p{S}", "zip -P {S} a.zip b", "unzip -P '{S}' a.zip"),
    around(NAMES, "names with numbers", "API_SECRET_2={S}", "DB1_PASSWORD={S}", "TOKEN_V2={S}", value="{a20}"),
    around(NAMES, "GitHub variables", "gh secret set DEPLOY_KEY --body '{S}'", "heroku config:set SECRET_TOKEN={S}", value="{a26}"),
    around(NAMES, "Docker file", "ENV NPM_AUTH={S}", "ARG GITHUB_PASSWORD={S}", "ENV API_KEY {S}", value="{a22}"),
    Kind(CODE, "grid", _grid),
    Kind(CODE, "mnemonic", _words),
    many(CODE, "in Spanish", "códigos de respaldo: {}", lambda rng: fill("{l4}-{l4}", rng), 4, " "),
    many(CODE, "one-time codes in prose", "my remaining 2FA codes are {}", lambda rng: fill("{d6}", rng), 3, " and "),
    around(CODE, "PINs", "the PIN of the SIM is {S}", "PIN: {S}", "my card's PIN: {S}", "pin={S}", value="{d4}"),
    around(CODE, "doors", "building code {S}", "key box code: {S}", "door code is {S}#", "garage PIN {S}", value="{d4}"),
    around(CODE, "TOTP address", "otpauth://totp/x:y?algorithm=SHA1&secret={S}&digits=6", "2fa secret {S}", value="{332}"),
    around(CODE, "SMS", "Code: {S}. Do not share it.", "Use {S} to verify your account", "Dein Code ist {S}", value="{d6}"),
    around(STRONG, "made by a manager", "password: {S}", "the admin password is {S}", "PASSWORD='{S}'", value=_made),
    around(STRONG, "Romanian and Bulgarian", "parola este {S}", "паролата \u0435 {S}", "{S} este parola"),
    around(STRONG, "Swedish and Norwegian", "lösenordet till NAS är {S}", "passordet til wifi er {S}", "{S} är lösenordet till wifi"),
    around(STRONG, "Korean and Japanese", "와이파이 비밀번호: {S}", "Wi-Fiのパスワード\uff1a{S}", "管理者パスワード {S}"),
    around(STRONG, "Chinese", "WiFi密码\uff1a{S}", "账号 admin 密码 {S}", "口令为{S}"),
    around(STRONG, "Arabic and Hindi", "كلمة السر: {S}", "वाईफाई पासवर्ड: {S}", "पासवर्ड है {S}"),
    around(STRONG, "asides", "password (don't share!): {S}", "the password, as of today, is {S}", "password for the {w} server = {S}"),
    around(STRONG, "abbreviated", "p/w: {S}", "psw {S}", "passwd {S}", "creds: {w}/{S}", "u: {w} p: {S}"),
    many(STRONG, "old and new", "old password {}", strong, 2, ", new password "),
    many(STRONG, "by environment", "passwords: dev={}", strong, 3, " / prod="),
    around(PLAIN, "in other languages", "mot de passe : {S}", "Kennwort: {S}", "hasło: {S}", "senha: {S}", "şifre {S}", value=letters),
    around(PLAIN, "two words", "password is {S} {w}", "the wifi password is {S} {w}", value="{w}"),
    around(PLAIN, "four words", "passphrase: {S} {w} {w} {w}", "the password is {S} {w} {w} {w}.", value="{w}"),
    around(PLAIN, "as the password", "use {S} as the password", "{S} is the wifi password", "log in with password {S}", value=letters),
    around(PLAIN, "told", "he told me the password: {S}", "password's {S}", "pass: {S}", value=letters),
    around(BARE, "login then value", "ssh bob@10.0.0.{d1}, then {S}", "log in as {w} with {S}", "{w} / {S} on the router"),
    around(BARE, "in chat", "try {S}", "{S} should work", "it's {S}", "I always use {S}"),
    around(BARE, "keys", "{S} <- that one", "here you go: {S}", "this works: {S}", value="{a32}"),
    around(NUMBERS, "cards", "visa ending soon {S}", "my visa: {S}", "card no {S}, cvc {d3}", value="4242 4242 4242 4242"),
    around(NUMBERS, "IBAN", "Konto: {S}", "IBAN={S}", value="GB82 WEST 1234 5698 7654 32"),
    around(NUMBERS, "SSN", "SSN: {S}", "{S} is his social security number", "ssn {S}", value="3{d2}-4{d1}-{d3}8"),
    around(NUMBERS, "tax", "Steuernummer {S}", "tax number: {S}", "mon numéro fiscal est {S}", value="{d11}"),
    around(NUMBERS, "health", "NHS number {S}", "Medicare: {S}", "insurance number {S}", value="{d3} {d3} {d4}"),
    Kind(HIDDEN, "letters with dashes", _dotted),
    Kind(HIDDEN, "invisible in both", _tagged),
    Kind(HIDDEN, "Cyrillic", _cyrillic),
    Kind(HIDDEN, "concatenated", _split_concatenation),
    around(HIDDEN, "labels with signs", "p-a-s-s-w-o-r-d: {S}", "pass_word -> {S}", "PaSsWoRd: {S}", "passwort:{S}"),
    around(HIDDEN, "far below", "Password:\n\n{S}\n", "password is on the next line\n{S}", "Passwort ↓\n{S}"),
    around(HIDDEN, "in brackets", "password [{S}]", "password: <{S}>", "(pw {S})", "password: {{{S}}}"),
    Kind(ENCODED, "header", _encoded_header),
    Kind(ENCODED, "YAML in base64", _encoded_yaml),
    Kind(ENCODED, "percent in the name", _encoded_in_url),
    Kind(ENCODED, "JSON in JSON in JSON", _escaped_json),
    Kind(ENCODED, "hex of a form", _hex_of_pair),
)  # fmt: skip
