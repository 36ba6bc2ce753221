"""Kinds of secrets written after the redactor was tuned on the three other lots; told apart until it is tuned on them.

Passwords in 17 languages with the label before the value, after it, and on the line before; dialects of settings;
codes; numbers of persons; what is encoded; lists.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from benchmarks.secrets.frames import WORDS, Kind, Planted, around, fill, key_lines, letters, many, strong, token

if TYPE_CHECKING:
    import random

MAIN, RARE, CONF, CODE, LINE = "provider, main", "provider, rarer", "configuration", "codes", "command line"
STRONG, PLAIN, BARE = "passwords, strong", "passwords, letters", "passwords, no label"
HIDDEN, ENCODED, LINKS, NUMBERS, NAMES = "obfuscated", "encoded", "connection strings", "numbers", "environment"

# Language: before the value, after it, on the line before.
LANGUAGES: Final = {
    "en": ("the backup password reads {S}", "{S} is our staging password", "Staging password below\n{S}"),
    "de": ("das WLAN-Passwort lautet {S}", "{S} ist das neue Passwort", "Das Passwort vom Router:\n{S}"),
    "fr": ("voici le mot de passe : {S}", "{S} est le mot de passe du serveur", "Mot de passe du NAS :\n{S}"),
    "es": ("la contraseña del wifi es {S}", "{S} es la contraseña nueva", "Contraseña del servidor:\n{S}"),
    "pt": ("a palavra-passe do router é {S}", "{S} é a senha do servidor", "Senha do banco:\n{S}"),
    "it": ("la password del server è {S}", "{S} è la password di produzione", "Password del database:\n{S}"),
    "nl": ("het wachtwoord van de server is {S}", "{S} is het nieuwe wachtwoord", "Wachtwoord:\n{S}"),
    "pl": ("hasło do serwera to {S}", "{S} to hasło do bazy", "Hasło do wifi:\n{S}"),
    "sv": ("lösenordet till databasen är {S}", "{S} är lösenordet", "Lösenord:\n{S}"),
    "tr": ("sunucunun şifresi {S}", "{S} yeni şifremiz", "Wifi şifresi:\n{S}"),
    "ru": ("пароль от сервера: {S}", "{S} — это пароль от базы", "Пароль от вайфая:\n{S}"),
    "ar": ("كلمة مرور الخادم هي {S}", "{S} هي كلمة المرور", "كلمة المرور:\n{S}"),
    "hi": ("सर्वर का पासवर्ड {S} है", "{S} हमारा पासवर्ड है", "पासवर्ड:\n{S}"),
    "zh": ("服务器的密码是 {S}", "{S} 是数据库密码", "数据库密码\uff1a\n{S}"),
    "ja": ("サーバーのパスワードは {S} です", "{S} がパスワードです", "パスワード\uff1a\n{S}"),
    "ko": ("서버 비밀번호는 {S} 입니다", "{S} 가 비밀번호입니다", "비밀번호:\n{S}"),
    "vi": ("mật khẩu máy chủ là {S}", "{S} là mật khẩu mới", "Mật khẩu wifi:\n{S}"),
}


def _spoken(language: str) -> tuple[Kind, ...]:
    before, after, below = LANGUAGES[language]
    return (
        around(STRONG, f"{language}, before", before),
        around(STRONG, f"{language}, after", after),
        around(STRONG, f"{language}, line before", below),
    )


def _kubeconfig(rng: random.Random) -> Planted:
    secret, line = fill("{a32}", rng), base64.b64encode(rng.randbytes(400)).decode()
    text = f"users:\n- name: {rng.choice(WORDS)}\n  user:\n    client-key-data: {line}\n    token: {secret}\n"
    return Planted(text, (secret, line))


def _columns(rng: random.Random) -> Planted:
    rows = [(rng.choice(WORDS), rng.choice(WORDS), strong(rng)) for _ in range(3)]
    head = "| host | user | password | note |\n|---|:--|---|---|\n"
    return Planted(head + "\n".join(f"| {a} | {b} | {c} | - |" for a, b, c in rows), tuple(c for *_, c in rows))


def _semicolons(rng: random.Random) -> Planted:
    rows = [strong(rng) for _ in range(3)]
    lines = "\n".join(f"{rng.choice(WORDS)};{row};2026-01-01" for row in rows)
    return Planted(f"account;passwd;created\n{lines}", tuple(rows))


def _json_string(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(json.dumps({"body": json.dumps({"db": {"password": secret}})}), (secret,))


def _one_token_over_lines(rng: random.Random) -> Planted:
    first, second = fill("ghp_{a18}", rng), fill("{a18}", rng)
    return Planted(f"token:\n  {first}\\\n  {second}", (first, second))


def _folded_key(rng: random.Random) -> Planted:
    first, second = fill("{b20}", rng), fill("{b20}", rng)
    return Planted(f"aws_secret_access_key = {first}\n    {second}", (first, second))


def _encoded_twice_in_percent(rng: random.Random) -> Planted:
    secret = quote(fill("{a12}!{d3}", rng), safe="")
    return Planted(f"https://{rng.choice(WORDS)}.io/cb#access_token%3D{secret}", (secret,))


def _base64_basic_url(rng: random.Random) -> Planted:
    line = base64.b64encode(f"{rng.choice(WORDS)}:{strong(rng)}".encode()).decode()
    return Planted(f'"auths": {{"registry.{rng.choice(WORDS)}.io": {{"auth": "{line}"}}}}', (line,))


def _hex_spaced(rng: random.Random) -> Planted:
    line = f"password: {strong(rng)}".encode().hex(" ")
    return Planted(f"bytes on the wire: {line}", (line,))


def _utf16(rng: random.Random) -> Planted:
    line = base64.b64encode(f"$password = '{strong(rng)}'".encode("utf-16-le")).decode()
    return Planted(f"powershell -EncodedCommand {line}", (line,))


def _html(rng: random.Random) -> Planted:
    secret = strong(rng)
    worn = "".join(f"&#{ord(letter)};" for letter in secret)
    return Planted(f"password: {worn}", (worn, worn[:24]))


def _json_escapes(rng: random.Random) -> Planted:
    secret = fill("ghp_{a36}", rng)
    worn = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    return Planted(f'{{"t": "{worn}"}}', (worn,))


def _dashes(rng: random.Random) -> Planted:
    secret = fill("ghp_{a36}", rng)
    worn = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
    return Planted(f"the token in groups: {worn}", (worn, secret[20:24] + " " + secret[24:28]))


def _spaced_token(rng: random.Random) -> Planted:
    worn = " ".join(fill("ghp_{a36}", rng))
    return Planted(f"spelled out: {worn}", (worn, worn[20:]))


def _bidi(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"pass\u202aword\u202c: \u2066{secret}\u2069", (secret,))


def _cyrillic_token(rng: random.Random) -> Planted:
    secret = fill("sk_live_{a24}", rng)
    worn = secret.replace("a", "а").replace("e", "е")  # noqa: RUF001 - that is the point
    return Planted(f"stripe key {worn}", (worn, worn[12:]))


def _circled(rng: random.Random) -> Planted:
    secret = strong(rng)
    word = "".join(chr(0x24D0 + ord(letter) - ord("a")) for letter in "password")
    return Planted(f"{word}: {secret}", (secret,))


def _zipped(rng: random.Random) -> Planted:
    line = base64.b64encode(gzip.compress(f"password={strong(rng)}".encode(), mtime=0)).decode()
    return Planted(f"gzip+base64: {line}", (line,))


def _csr_and_key(rng: random.Random) -> Planted:
    lines, public = key_lines(rng, 4), "\n".join(key_lines(rng, 3))
    begin = "-----BEGIN ENCRYPTED PRIVATE" + " KEY-----\n"
    text = f"-----BEGIN CERTIFICATE-----\n{public}\n-----END CERTIFICATE-----\n{begin}"
    return Planted(text + "\n".join(lines) + "\n-----END ENCRYPTED PRIVATE" + " KEY-----", tuple(lines))


def _diff(rng: random.Random) -> Planted:
    lines = key_lines(rng, 5)
    rows = ["-----BEGIN RSA PRIVATE" + " KEY-----", *lines, "-----END RSA PRIVATE" + " KEY-----"]
    return Planted("\n".join(f"+{row}" for row in rows), tuple(lines))


def _numbered(rng: random.Random) -> Planted:
    lines = key_lines(rng, 5)
    rows = ["-----BEGIN EC PRIVATE" + " KEY-----", *lines, "-----END EC PRIVATE" + " KEY-----"]
    return Planted("\n".join(f"{at:4}  {row}" for at, row in enumerate(rows, 1)), tuple(lines))


def _ssh_dollar(rng: random.Random) -> Planted:
    lines = key_lines(rng, 4)
    body = "\\n".join(["-----BEGIN OPENSSH PRIVATE" + " KEY-----", *lines, "-----END OPENSSH PRIVATE" + " KEY-----"])
    return Planted(f"export SSH_KEY=$'{body}'", tuple(lines))


def _wireguard(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(32)).decode()


NEWEST: Final[tuple[Kind, ...]] = (
    *(kind for language in LANGUAGES for kind in _spoken(language)),
    token(MAIN, "GitHub app", "ghs_{a36}", "ghu_{a36}", "ghr_{a36}"),
    token(MAIN, "OpenAI service", "sk-svcacct-{u58}", "sk-admin-{u58}"),
    token(MAIN, "Slack app", "xoxe.xoxp-1-{a146}", "xoxp-{d12}-{d12}-{d12}-{h32}"),
    token(MAIN, "GitLab more", "glrt-{u20}", "glptt-{h40}", "glcbt-{d2}_{u20}"),
    token(MAIN, "Google OAuth", "ya29.{u120}", "1//0{u60}"),
    token(MAIN, "Stripe webhook", "whsec_{a32}", "pk_live_{a24}"),
    token(MAIN, "Hugging Face organisation", "api_org_{x34}"),
    around(MAIN, "AWS JSON", '"SecretAccessKey": "{S}"', 'aws_secret_key="{S}"', "awsSecretKey={S}", value="{b40}"),
    around(MAIN, "Azure AD", "client_secret: {S}", "tenant secret = {S}", value="{a3}7Q~{u34}"),
    around(MAIN, "Twilio by name", "twilio auth token {S}", "TWILIO_AUTH_TOKEN={S}", value="{h32}"),
    around(MAIN, "Slack signing", "SLACK_SIGNING_SECRET={S}", "slack signing secret: {S}", value="{h32}"),
    around(MAIN, "Cloudflare", "cloudflare api token {S}", "CLOUDFLARE_API_TOKEN={S}", value="{u40}"),
    around(MAIN, "Confluent", "confluent api secret is {S}", "sasl.password={S}", value="{b64}"),
    token(RARE, "Scaleway", "SCW{A17}", frames=("access key {}", "SCW_ACCESS_KEY={}")),
    token(RARE, "Sourcegraph", "sgp_{h16}_{h40}", "sgp_{h40}"),
    token(RARE, "Prefect", "pnu_{l36}"),
    token(RARE, "ReadMe", "rdme_{l70}"),
    token(RARE, "Frame.io", "fio-u-{u64}"),
    token(RARE, "Shippo", "shippo_live_{h40}"),
    token(RARE, "Duffel", "duffel_live_{u43}"),
    token(RARE, "EasyPost", "EZAK{a54}", "EZTK{a54}"),
    token(RARE, "Flutterwave", "FLWSECK-{h32}-X"),
    token(RARE, "Dynatrace", "dt0c01.{A24}.{A64}"),
    token(RARE, "Intra42", "s-s4t2ud-{h64}"),
    token(RARE, "Clojars", "CLOJARS_{l60}"),
    token(RARE, "Sendinblue", "xkeysib-{h64}-{l16}"),
    token(RARE, "Harness", "pat.{u22}.{h24}.{a20}"),
    token(RARE, "Infracost", "ico-{a32}"),
    token(RARE, "Octopus", "API-{A26}"),
    token(RARE, "Perplexity", "pplx-{a48}"),
    token(RARE, "Artifactory", "AKCp{a69}", "cmVmd{a59}"),
    token(RARE, "Lob", "live_{h35}", "test_{h35}"),
    token(RARE, "Yandex", "y0_{u55}", "AQVN{u36}", "YC{u38}"),
    around(RARE, "Bittrex", "bittrex secret {S}", "BITTREX_SECRET_KEY={S}", value="{l32}"),
    around(RARE, "Coinbase", "coinbase api secret {S}", "COINBASE_ACCESS_TOKEN={S}", value="{u64}"),
    around(RARE, "Etsy", "etsy api key: {S}", "ETSY_KEY={S}", value="{l24}"),
    around(RARE, "Fastly", "fastly token {S}", "FASTLY_API_TOKEN={S}", value="{u32}"),
    around(RARE, "Finicity", "finicity api token {S}", "FINICITY_TOKEN={S}", value="{h32}"),
    around(RARE, "Gitter", "gitter access token is {S}", "GITTER_TOKEN={S}", value="{h40}"),
    around(RARE, "HubSpot", "hubspot key {S}", "HUBSPOT_API_KEY={S}", value="{uuid}"),
    around(RARE, "Intercom", "intercom access token: {S}", value="{u60}"),
    around(RARE, "LaunchDarkly", "launchdarkly access token {S}", "LD_SDK_KEY=sdk-{S}", value="{uuid}"),
    around(RARE, "LinkedIn", "linkedin client secret {S}", "LINKEDIN_SECRET={S}", value="{l16}"),
    around(RARE, "Snyk", "snyk token {S}", "SNYK_TOKEN={S}", value="{uuid}"),
    around(RARE, "Travis", "travis token {S}", "TRAVIS_TOKEN={S}", value="{l22}"),
    around(RARE, "Zendesk", "zendesk secret key {S}", "ZENDESK_SECRET={S}", value="{l40}"),
    around(RARE, "Kraken", "kraken private key {S}", "KRAKEN_SECRET={S}", value="{b86}=="),
    around(RARE, "Twitch", "twitch client secret {S}", "TWITCH_OAUTH=oauth:{S}", value="{l30}"),
    Kind("PEM", "encrypted, after a certificate", _csr_and_key),
    Kind("PEM", "diff", _diff),
    Kind("PEM", "line numbers", _numbered),
    Kind("PEM", "shell", _ssh_dollar),
    around(
        "PEM",
        "WireGuard",
        "[Interface]\nPrivateKey = {S}\nAddress = 10.0.0.2/24",
        "PresharedKey = {S}",
        value=_wireguard,
    ),
    around(LINKS, "Elasticsearch", "https://elastic:{S}@es.{w}.io:9243", "http://{w}:{S}@10.0.0.{d2}:9200/_cat"),
    around(LINKS, "Kafka", 'sasl.jaas.config=x required username="{w}" password="{S}";'),
    around(LINKS, "key and value", "user id={w};pwd={S};server=db", "Provider=SQLOLEDB;Password={S};User ID=sa"),
    around(LINKS, "Rails", "DATABASE_URL=postgresql://{w}:{S}@db/{w}_production", value="{a16}"),
    around(LINKS, "proxy", "http_proxy=http://{w}:{S}@proxy.{w}.io:3128", "ftp://{w}:{S}@ftp.{w}.io/in"),
    around(LINKS, "magic link", "https://{w}.io/magic/{S}", "https://{w}.io/login/verify/{S}", value="{a40}"),
    around(LINKS, "reset link", "https://{w}.io/reset-password/{S}", "https://{w}.io/u/reset?token={S}", value="{u32}"),
    around(LINKS, "calendar", "https://calendar.{w}.io/ical/x/private-{S}/basic.ics", value="{h32}"),
    Kind(CONF, "kubeconfig", _kubeconfig),
    Kind(CONF, "Markdown columns", _columns),
    Kind(CONF, "CSV with semicolons", _semicolons),
    Kind(CONF, "JSON in JSON", _json_string),
    around(CONF, "Rails secrets", "production:\n  secret_key_base: {S}", "secret_key_base = '{S}'", value="{h128}"),
    around(CONF, "database.yml", "production:\n  adapter: mysql2\n  username: {w}\n  password: {S}\n"),
    around(CONF, "XML attributes", '<user name="{w}" password="{S}"/>', "<pwd><![CDATA[{S}]]></pwd>"),
    around(CONF, "Maven", "<server>\n<id>{w}</id>\n<username>{w}</username>\n<password>{S}</password>\n</server>"),
    around(CONF, "web.config", '<add name="Db" connectionString="Server=x;User Id={w};Password={S};" />'),
    around(CONF, "properties with spaces", "db.password : {S}", "  jdbc.password   =   {S}"),
    around(CONF, "GitHub Actions", "env:\n  NPM_TOKEN: {S}\n", "with:\n  password: {S}", value="{a36}"),
    around(CONF, "Nix", 'hashedPassword = "{S}";', value="$6${a16}${a86}"),
    around(CONF, "NetworkManager", "[wifi-security]\nkey-mgmt=wpa-psk\npsk={S}", value="{w}{d4}"),
    around(CONF, "Go", 'cfg.Password = "{S}"', 'Password: "{S}",', 'const apiSecret = "{S}"'),
    around(CONF, "Rust", 'let password = "{S}";', '.password("{S}")', 'secret: "{S}".to_string(),'),
    around(CONF, "crontab", "0 3 * * * MYSQL_PWD={S} mysqldump {w} > /b.sql"),
    around(CONF, "s3cfg", "access_key = {A20}\nsecret_key = {S}", "aws_secret = {S}", value="{b40}"),
    around(CONF, "mutt", 'set imap_pass = "{S}"', 'set smtp_pass="{S}"'),
    around(LINE, "htpasswd", "htpasswd -b .htpasswd {w} {S}", "htpasswd -cbB /etc/x {w} {S}", "htpasswd -nb {w} {S}"),
    around(LINE, "smbclient", "mount -t cifs //nas/x /mnt -o user={w},password={S}", "smbclient //nas/x {S} -U {w}"),
    around(LINE, "ldapsearch", "ldapsearch -x -D cn=admin -w {S} -b dc={w}", "ldapadd -D cn={w} -w '{S}' -f x.ldif"),
    around(LINE, "az", "az login --service-principal -u {w} -p {S} --tenant {w}", "az sql server create -p {S}"),
    around(LINE, "curl form", "curl -d 'user={w}&password={S}' https://{w}.io", "curl --data password={S} x"),
    around(LINE, "SQL more", "SET PASSWORD FOR {w} = PASSWORD('{S}');", "ALTER ROLE {w} PASSWORD '{S}'"),
    around(LINE, "expect", 'expect "assword:" {{ send "{S}\\r" }}'.replace("{{", "{").replace("}}", "}")),
    around(LINE, "keytool", "keytool -importkeystore -deststorepass {S} -srcstorepass changeit", "-storepass {S}"),
    around(LINE, "gpg echo", "echo '{S}' | gpg --passphrase-fd 0 -d x.gpg", "echo {S} | sudo -S apt update"),
    around(LINE, "rclone", "rclone config create {w} sftp pass {S}", "restic --password-command 'echo {S}'"),
    around(NAMES, "frameworks", "LARAVEL_APP_KEY={S}", "FLASK_SECRET={S}", "COOKIE_SECRET={S}", value="{bytes32}"),
    around(
        NAMES,
        "PowerShell",
        "$env:API_TOKEN = '{S}'",
        "[Environment]::SetEnvironmentVariable('API_KEY','{S}')",
        value="{a32}",
    ),
    around(NAMES, "Windows", "set DB_PASSWORD={S}", "setx API_SECRET {S}", value="{W}{d3}{a5}"),
    around(NAMES, "named oddly", "DBPASS={S}", "MAILPW={S}", "ROOTPW='{S}'", "USERPASSWD={S}", value="{w}{d4}"),
    many(
        CODE, "recovery codes in columns", "Recovery codes\n{}", lambda rng: fill("{l5}-{l5}  {l5}-{l5}", rng), 4, "\n"
    ),
    many(CODE, "codes in brackets", "2FA recovery codes: [{}]", lambda rng: fill("{d8}", rng), 4, ", "),
    many(CODE, "codes in German", "Wiederherstellungscodes: {}", lambda rng: fill("{d4} {d4}", rng), 3, ", "),
    around(
        CODE,
        "TOTP in prose",
        "the 2FA secret key is {S}",
        "TOTP: {S}",
        "scan or type {S} into the authenticator",
        value="{332}",
    ),
    around(
        CODE,
        "TOTP in groups",
        "setup key: {S}",
        "authenticator setup key {S}",
        value="{x4} {x4} {x4} {x4} {x4} {x4} {x4} {x4}",
    ),
    around(CODE, "TOTP link", "otpauth://totp/{w}:{w}?secret={S}&issuer={w}&digits=6", value="{316}"),
    around(
        CODE,
        "PIN elsewhere",
        "Meine PIN ist {S}",
        "el PIN es {S}",
        "le code PIN est {S}",
        "PINコードは{S}",
        value="{d4}",
    ),
    around(CODE, "PIN of a card", "card PIN {S}", "my SIM's PIN is {S}", "debit card pin: {S}", value="{d4}"),
    around(
        CODE, "door", "the code for the front door is {S}", "front door: {S}#", "gate opens with {S}#", value="{d4}"
    ),
    around(CODE, "PUK", "PUK: {S}", "the PUK is {S}", value="{d8}"),
    many(STRONG, "and", "passwords are {}", strong, 2, " and "),
    many(STRONG, "or", "the password is either {}", strong, 2, " or "),
    many(STRONG, "lines", "passwords:\n- {}", strong, 3, "\n- "),
    many(STRONG, "listed for", "passwords: db {}", strong, 2, ", web "),
    around(STRONG, "chat", "pw: {S} lmk if it works", "hey the pass is {S}", "heres the login: {w} pw {S}"),
    around(STRONG, "later in the line", "Password for the new VPN account of {W} (valid till Friday): {S}"),
    around(STRONG, "changed", "I reset the password from {w} to {S}", "new password = {S}, old one is void"),
    around(STRONG, "quoted", "password “{S}”", "the password is «{S}»", "das Passwort ist „{S}“"),
    around(PLAIN, "languages", "la contraseña es {S}", "hasło to {S}", "şifre: {S}", "mật khẩu là {S}", value=letters),
    around(PLAIN, "labels", "Password - {S}", "pwd {S}", "pw: {S}", "passwd={S}", value=letters),
    around(
        PLAIN,
        "joined words",
        "the passphrase is {S}",
        "password: {S}",
        value=lambda rng: "-".join(rng.sample(WORDS, 4)),
    ),
    around(PLAIN, "capitals", "the master password is {S}", value=lambda rng: " ".join(rng.sample(WORDS, 4)).title()),
    around(PLAIN, "of two words", "wifi password: {w} {S}", "the wifi password is {w} {S}.", value="{w}"),
    around(BARE, "in a dialogue", "what's the wifi? - {S}", "and to get in? {S}", "the router login is {w} and {S}"),
    around(BARE, "guest network", "SSID {w}, {S}", "guest network {w}: {S}", "wifi: {w} / {S}"),
    around(NUMBERS, "SSN in words", "SSN: {S}", "her social security no. is {S}", "ssn={S}", value="1{d2}-{d1}3-{d3}7"),
    around(NUMBERS, "SSN in digits", "SSN {S}", "social security number {S}", value="2{d8}"),
    around(
        NUMBERS,
        "IBAN in other lands",
        "Kontonummer {S}",
        "IBAN: {S}",
        "transfer to {S}",
        value="FR1420041010050500013M02606",
    ),
    around(NUMBERS, "IBAN with gaps", "my iban is {S} thanks", value="NL91 ABNA 0417 1643 00"),
    around(NUMBERS, "card in digits", "credit card {S}", "amex {S}", "pay with {S} 12/29", value="5555555555554444"),
    around(NUMBERS, "tax", "Steuer-ID {S}", "tax id {S}", "my TIN is {S}", value="{d11}"),
    around(NUMBERS, "insurance", "NI number {S}", "national insurance {S}", value="QQ {d2} {d2} {d2} C"),
    around(NUMBERS, "licence", "driver's license {S}", "driving licence no {S}", value="{X1}{d7}"),
    Kind(HIDDEN, "token over lines", _one_token_over_lines),
    Kind(HIDDEN, "key over lines", _folded_key),
    Kind(HIDDEN, "groups of four", _dashes),
    Kind(HIDDEN, "spelled out", _spaced_token),
    Kind(HIDDEN, "directions", _bidi),
    Kind(HIDDEN, "Cyrillic token", _cyrillic_token),
    Kind(HIDDEN, "circled", _circled),
    around(HIDDEN, "marked up", "**password:** {S}", "<b>Password</b>: {S}", "_password_: `{S}`", "password: ||{S}||"),
    around(
        HIDDEN,
        "other signs",
        "password ⇒ {S}",
        "password = > {S}",
        "password… {S}",
        "password\ua789 {S}",
        "password\ufe55{S}",
    ),
    Kind(ENCODED, "registry", _base64_basic_url),
    Kind(ENCODED, "fragment", _encoded_twice_in_percent),
    Kind(ENCODED, "hex with spaces", _hex_spaced),
    Kind(ENCODED, "UTF-16", _utf16),
    Kind(ENCODED, "character references", _html),
    Kind(ENCODED, "JSON escapes", _json_escapes),
    Kind(ENCODED, "compressed", _zipped),
)
