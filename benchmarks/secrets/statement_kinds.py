"""Kinds of secrets, and statements without one, written after the redactor was tuned on `tuning_kinds`."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from benchmarks.secrets.frames import WORDS, Kind, Planted, around, fill, key_lines, letters, many, strong, token

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

MAIN, RARE, CONF, CODE, LINE = "provider, main", "provider, rarer", "configuration", "codes", "command line"
STRONG, PLAIN, BARE = "passwords, strong", "passwords, letters", "passwords, no label"
HIDDEN, ENCODED, LINKS, NUMBERS, NAMES = "obfuscated", "encoded", "connection strings", "numbers", "environment"
_GREEK_A, _CYRILLIC_E, _CYRILLIC_S = "\u03b1", "\u0435", "\u0455"


def _key(rng: random.Random, kind: str, before: str = "", indent: str = "") -> Planted:
    lines = key_lines(rng, 6)
    block = [f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"]
    return Planted(before + "\n".join(indent + line for line in block), tuple(lines))


def _ssh(rng: random.Random) -> Planted:
    return _key(rng, "OPENSSH PRIVATE" + " KEY", "key: |\n", "    ")


def _pgp(rng: random.Random) -> Planted:
    return _key(rng, "PGP PRIVATE" + " KEY BLOCK", "my signing key\n", "> ")


def _cut(rng: random.Random) -> Planted:
    lines = key_lines(rng, 6)
    return Planted("\n".join(["-----BEGIN EC PRIVATE" + " KEY-----", *lines]), tuple(lines))


def _putty(rng: random.Random) -> Planted:
    lines = key_lines(rng, 4)
    text = [
        "PuTTY-User-Key-File-3: ssh-rsa",
        "Encryption: none",
        "Private-Lines: 4",
        *lines,
        "Private-MAC: " + fill("{h64}", rng),
    ]
    return Planted("\n".join(text), tuple(lines))


def _jwk(rng: random.Random) -> Planted:
    secret = fill("{u43}", rng)
    return Planted(json.dumps({"kty": "EC", "crv": "P-256", "x": fill("{u43}", rng), "d": secret}), (secret,))


def _base64_url(rng: random.Random) -> Planted:
    link = f"postgres://{rng.choice(WORDS)}:{strong(rng)}@db:5432/app"
    line = base64.b64encode(link.encode()).decode()
    return Planted(f"DATABASE_URL in base64 is {line}", (line,))


def _kubernetes(rng: random.Random) -> Planted:
    value = base64.b64encode(strong(rng).encode()).decode()
    return Planted(f"kind: Secret\ndata:\n  db-password: {value}\n", (value,))


def _unicode_escapes(rng: random.Random) -> Planted:
    worn = "".join(f"\\u{ord(letter):04x}" for letter in strong(rng))
    return Planted(f'"password": "{worn}"', (worn,))


def _hex_token(rng: random.Random) -> Planted:
    worn = fill("ghp_{a36}", rng).encode().hex()
    return Planted(f"token (hex): {worn}", (worn,))


def _wide_token(rng: random.Random) -> Planted:
    worn = "".join(chr(ord(letter) + 0xFEE0) for letter in fill("sk_live_{a24}", rng))
    return Planted(f"stripe {worn} for payments", (worn,))


def _entities(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"<p>pass&#119;ord&#58; {secret}</p>", (secret,))


def _greek(rng: random.Random) -> Planted:
    secret = strong(rng)
    word = rng.choice((f"p{_GREEK_A}ssword", f"pa{_CYRILLIC_S}{_CYRILLIC_S}word", f"s{_CYRILLIC_E}cret"))
    return Planted(f"{word}: {secret}", (secret,))


def _spaced(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"p a s s w o r d : {secret}", (secret,))


def _basic(rng: random.Random) -> Planted:
    line = base64.b64encode(f"{rng.choice(WORDS)}:{strong(rng)}".encode()).decode()
    return Planted(f"Authorization: Basic {line}", (line,))


def _split(rng: random.Random) -> Planted:
    token_ = fill("ghp_{a36}", rng)
    return Planted(f'"{token_[:12]}" + "{token_[12:]}"', (token_[12:],))


LATER: Final[tuple[Kind, ...]] = (
    token(MAIN, "GitLab", "glpat-{u20}", "gldt-{u20}"),
    token(MAIN, "Hugging Face", "hf_{a34}"),
    token(MAIN, "DigitalOcean", "dop_v1_{h64}"),
    token(MAIN, "Shopify", "shpat_{h32}"),
    token(MAIN, "Twilio", "SK{h32}"),
    token(MAIN, "Telegram", "{d10}:AA{u33}"),
    around(
        MAIN,
        "Azure client",
        "AZURE_CLIENT_SECRET={S}",
        "the client secret of the app registration is {S}",
        value="{a3}8Q~{u34}",
    ),
    around(MAIN, "Azure storage", "AccountName={w};AccountKey={S};EndpointSuffix=core.windows.net", value="{b86}=="),
    around(MAIN, "Google service", '"private_key_id": "{h40}", "client_secret": "{S}"', value="{u24}"),
    around(MAIN, "Mistral", "MISTRAL_API_KEY={S}", "our mistral key is {S}", value="{a32}"),
    around(MAIN, "Slack webhook", "https://hooks.slack.com/services/{S}", value="T{A8}/B{A8}/{a24}"),
    token(RARE, "Postman", "PMAK-{h24}-{h34}"),
    token(RARE, "Notion", "ntn_{a46}", "secret_{a43}"),
    token(RARE, "Figma", "figd_{u40}"),
    token(RARE, "New Relic", "NRAK-{A27}"),
    token(RARE, "Grafana", "glsa_{a32}_{h8}"),
    token(RARE, "Fly", "FlyV1 fm2_{b120}"),
    token(RARE, "Airtable", "pat{a14}.{h64}"),
    token(RARE, "Tailscale", "tskey-auth-{a16}-{a32}"),
    token(RARE, "1Password", "ops_eyJ{u120}"),
    around(RARE, "Mailchimp", "mailchimp: {S}", value="{h32}-us{d2}"),
    around(RARE, "Algolia", "ALGOLIA_ADMIN_KEY={S}", "algolia admin key is {S}", value="{h32}"),
    around(RARE, "Okta", "okta api token {S}", "SSWS {S}", value="00{u40}"),
    around(RARE, "PagerDuty", "pagerduty token: {S}", "PD token {S}", value="u+{u18}"),
    around(RARE, "Trello", "trello key {h32} and token {S}", value="ATTA{h72}"),
    around(RARE, "Sentry", "https://{S}@o{d6}.ingest.sentry.io/{d7}", value="{h32}"),
    around(RARE, "Plaid", "plaid secret {S}", "PLAID_SECRET={S}", value="{h30}"),
    Kind("PEM", "indented", _ssh),
    Kind("PEM", "PGP", _pgp),
    Kind("PEM", "cut off", _cut),
    Kind("PEM", "PuTTY", _putty),
    Kind("PEM", "JWK", _jwk),
    around(LINKS, "amqp", "amqps://{w}:{S}@rabbit.{w}.io/vhost", value="{a18}"),
    around(LINKS, "JDBC", "jdbc:mysql://db/{w}?user={w}&password={S}&useSSL=true", value="{a14}"),
    around(LINKS, "libpq", "host=db user={w} password={S} dbname={w}", value="{W}{d3}{a5}"),
    around(
        LINKS,
        "git",
        "git clone https://{w}:{S}@git.{w}.io/{w}.git",
        "https://oauth2:{S}@gitlab.{w}.io/x.git",
        value="{u22}",
    ),
    around(LINKS, "SAS", "https://{w}.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={S}", value="{a30}%2B{a12}%3D"),
    around(LINKS, "ldap", "ldap://cn=admin,dc={w}:{S}@ldap.{w}.io", "snowflake://{w}:{S}@acc/db", value="{a12}!"),
    around(CONF, "TOML", '[db]\nuser = "{w}"\npassword = "{S}"', "secret_key = '{S}'"),
    around(CONF, "Spring", "spring.datasource.password={S}", "spring.mail.password: {S}"),
    around(CONF, "PHP", "define('DB_PASSWORD', '{S}');", "'password' => '{S}',"),
    around(CONF, "Terraform", 'variable "db_password" {\n  default = "{S}"\n}', 'master_password = "{S}"'),
    around(CONF, "INI", "[client]\nuser={w}\npassword={S}", "smtp_pass = {S}"),
    around(CONF, "docker", "environment:\n  - MYSQL_ROOT_PASSWORD={S}", "POSTGRES_PASSWORD: {S}"),
    around(CONF, "wpa", 'network={\n ssid="{w}"\n psk="{S}"\n}', value="{w}{w}{d2}"),
    around(CONF, "Java", 'String password = "{S}";', 'conn.setPassword("{S}");', 'new Credentials("{w}", "{S}")'),
    around(
        LINE,
        "docker",
        "docker login -u {w} -p {S} registry.{w}.io",
        "echo {S} | docker login -u {w} --password-stdin",
        value="{a16}",
    ),
    around(LINE, "psql", "PGPASSWORD={S} psql -h db -U {w}", "sshpass -p '{S}' ssh {w}@host"),
    around(LINE, "vault", "vault login {S}", "vault kv put secret/{w} password={S}", value="hvs.{a24}"),
    around(LINE, "aws", "aws configure set aws_secret_access_key {S}", value="{b40}"),
    around(LINE, "kubectl", "kubectl create secret generic {w} --from-literal=password={S}"),
    around(
        LINE, "openssl", "openssl enc -aes-256-cbc -pass pass:{S} -in {w}", "gpg --batch --passphrase {S} -d {w}.gpg"
    ),
    around(
        LINE,
        "curl header",
        "curl -H 'X-Api-Key: {S}' https://{w}.io",
        'curl -H "Authorization: Bearer {S}" https://{w}.io',
        value="{a32}",
    ),
    around(LINE, "useradd", "echo '{w}:{S}' | chpasswd", "net user {w} {S} /add"),
    around(
        NAMES,
        "more names",
        "TWITTER_ACCESS_TOKEN_SECRET={S}",
        "RAILS_MASTER_KEY={S}",
        "NEXTAUTH_SECRET={S}",
        "APP_KEY=base64:{S}",
        "ENCRYPTION_KEY={S}",
        "LDAP_BIND_PW={S}",
        "S3_SECRET={S}",
        value="{bytes24}",
    ),
    around(NAMES, "short values", "ADMIN_PASS={S}", "REDIS_PASSWORD={S}", "FTP_PWD={S}", value="{w}{d3}"),
    many(CODE, "numbered", "Recovery codes:\n1. {}", lambda rng: fill("{d4}-{d4}", rng), 4, "\n2. "),
    many(CODE, "in a sentence", "my 2FA backup codes are {}", lambda rng: fill("{l8}", rng) + "7", 3, " and "),
    around(
        CODE, "one time", "your verification code is {S}", "the OTP was {S}", "Best\u00e4tigungscode: {S}", value="{d6}"
    ),
    around(CODE, "places", "the alarm code at the office is {S}", "gate code {S}", "garage keypad: {S}", value="{d4}"),
    around(
        CODE,
        "seed phrase",
        "wallet seed: {S}",
        "my recovery phrase is {S}",
        value=lambda rng: " ".join(rng.sample(WORDS[:30], 12)),
    ),
    around(CODE, "app password", "gmail app password {S}", "app-specific password: {S}", value="{x4} {x4} {x4} {x4}"),
    around(STRONG, "it", "la password \u00e8 {S}", "password del router: {S}", "parola d'ordine: {S}"),
    around(STRONG, "pt", "a senha do banco \u00e9 {S}", "senha: {S}"),
    around(STRONG, "nl", "het wachtwoord is {S}", "wachtwoord van de server: {S}"),
    around(STRONG, "pl", "has\u0142o to {S}", "has\u0142o do bazy: {S}"),
    around(STRONG, "tr", "\u015fifre {S}", "\u015fifremiz: {S}", "parola {S}"),
    around(
        STRONG,
        "ru",
        "\u043f\u0430\u0440\u043e\u043b\u044c {S}",
        "\u043f\u0430\u0440\u043e\u043b\u044c \u043e\u0442 \u0431\u0430\u0437\u044b \u2014 {S}",
    ),
    around(STRONG, "zh", "\u5bc6\u7801\u662f{S}", "\u6570\u636e\u5e93\u5bc6\u7801\uff1a{S}"),
    around(STRONG, "ko", "\ube44\ubc00\ubc88\ud638\ub294 {S} \uc785\ub2c8\ub2e4", "\ube44\ubc00\ubc88\ud638: {S}"),
    around(STRONG, "id", "kata sandi adalah {S}", "kata sandinya {S}"),
    around(STRONG, "uk", "\u043f\u0430\u0440\u043e\u043b\u044c \u0434\u043e wifi: {S}"),
    around(
        STRONG,
        "en again",
        "I changed my password to {S}",
        "pw is {S} btw",
        "my passwd ({S}) works",
        "Password for {w}@{w}.io is {S}",
        "please remember the root password {S}",
        "the password? {S}",
        "PASSWORD -> {S}",
        "credentials: {w} / {S}",
    ),
    around(
        PLAIN,
        "en again",
        "my password is {S}, keep it",
        "the guest wifi password is {S}.",
        "set the password to {S}",
        "Password = {S}",
        value=letters,
    ),
    around(
        PLAIN,
        "fr es it",
        "le mot de passe est {S}.",
        "la contrase\u00f1a es {S}",
        "la password \u00e8 {S}",
        value=letters,
    ),
    around(
        PLAIN, "as", "use {S} as the password", "log in with password {S}", "{S} is the wifi password", value=letters
    ),
    around(
        PLAIN, "ja zh", "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f{S}\u3067\u3059", "\u5bc6\u7801\u662f{S}", value=letters
    ),
    around(BARE, "for", "for the printer type {S}", "the router wants {S}", "unlock the laptop with {S}"),
    around(BARE, "pairs", "{w}@{w}.io:{S}", "root / {S}", "user {w}, {S}"),
    around(NUMBERS, "CVV", "card ending 4242, CVV {S}", "cvc: {S}", value="{d3}"),
    around(NUMBERS, "card with a date", "Visa {S} exp 08/28", value="4111 1111 1111 1111"),
    around(NUMBERS, "passport", "passport number {S}", "my passport no. is {S}", value="C{d8}"),
    around(NUMBERS, "account", "account number {S}, routing {d9}", value="{d10}"),
    Kind(HIDDEN, "Greek", _greek),
    Kind(HIDDEN, "entities", _entities),
    Kind(HIDDEN, "spaced", _spaced),
    Kind(HIDDEN, "fullwidth", _wide_token),
    Kind(HIDDEN, "split literal", _split),
    around(HIDDEN, "leet", "p@ssw0rd: {S}", "the passw0rd is {S}", "P4SSWORD={S}"),
    Kind(ENCODED, "URL", _base64_url),
    Kind(ENCODED, "Kubernetes", _kubernetes),
    Kind(ENCODED, "escapes", _unicode_escapes),
    Kind(ENCODED, "hex token", _hex_token),
    Kind(ENCODED, "basic", _basic),
)

SENTENCES: Final = """\
The token bucket refills at {d2} requests per second.
Passwords: see the handbook, chapter {d1}.
Our key metric is retention; secret sauce is the {w} team.
I forgot my PIN again and went to the bank.
Reset password links expire after {d2} hours.
Is the password case sensitive?
The password prompt appears twice on {w} terminals.
Keys rotate on the first of each month.
la clave del \u00e9xito es la constancia
Das Kennwort muss mindestens acht Zeichen haben.
le jeton expire apr\u00e8s {d2} minutes
\u5bc6\u7801\u5fc5\u987b\u81f3\u5c11\u516b\u4f4d
Ask {W} for access to the vault.
The auth service runs on port {d4}.
access code review starts at {d1}pm
The security code scan found nothing in {w}-{w}.
His passport expires in 2031.
the backup codebase lives in {w}-mirror
Session tokens are {d2} bytes long and signed with HMAC.
We pass the user id {d5} to the {w} service.
The test passes on Python 3.1{d1} but not on 3.9.
Team {w}: 4 wins, {W}: 2 losses.
Flight LH{d3} leaves at 1{d1}:45 from gate B{d2}.
The recipe needs {d3} g flour and 2 eggs.
Use tabs as the indentation, spaces as alignment.
Postgres is the database, Redis the cache, and the password hash is bcrypt.
Lunch is at noon; the door code will be changed soon.
The account number field accepts ten digits.
""".splitlines()
CODE_LINES: Final = """\
val token = tokenRepository.findByUserId(userId)
if err := bcrypt.CompareHashAndPassword(hash, []byte(password)); err != nil {
this.passwordControl = new FormControl('', [Validators.required]);
secretKeyRef: {name: db-credentials, key: password}
for key, value in sorted(settings.items()):
let auth_header = format!("Bearer {}", token);
password = kwargs.pop("password", None)
assert token.kind == TokenKind.IDENTIFIER
API_KEY = config("API_KEY")
apiVersion: v1
KEY idx_{w}_{w} (`{w}_id`,`created_at`)
ssh-keygen -t ed25519 -C "{w}@{w}.example"
aws s3 cp s3://{w}-{w}/backup-{d8}.tgz .
pip install --require-hashes -r requirements-{d1}.txt
{"keyboard": "dvorak", "token_limit": {d4}}
SECRET_KEY = get_random_secret_key()
vault kv get -field=password secret/{w}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
""".splitlines()
NAMES_LINES: Final = (
    "branch feature/{w}-{w}-{d4}",
    "see RFC {d4} section {d1}.{d1}",
    "part number {X2}-{d4}-{X1}",
    "room 4.{d2}",
    "chromosome position chr7:{d8}",
    "gene ENSG0000{d7}",
    "0x{h8} segfaulted",
    "build {d4}.{h7}",
    "the {W}-{d2} printer",
    "model RTX {d4} Ti",
    "IMEI is on the box",
    "ASIN B0{A8}",
    "case {X3}-2026-{d6}",
    "color #{h6}",
    "MAC {h2}:{h2}:{h2}:{h2}:{h2}:{h2}",
    "VIN is in the papers",
    "DOI 10.{d4}/{x5}.{d6}",
    "cve-2024-{d5}",
    "docker.io/{w}/{w}@sha256:{h64}",
    "git+https://github.com/{w}/{w}@{h40}",
    "uuid={uuid}",
    "trace={h32} span={h16}",
    "snowflake id {d18}",
    "telephone 030 {d8}",
    "postcode SW1A {d1}AA",
    "https://{w}.example/a/{uuid}",
    "https://{w}.example/#section-{d2}",
    "release-notes-v{d1}.{d2}.md",
)


def _lines(lines: tuple[str, ...] | list[str]) -> Callable[[random.Random], str]:
    return lambda rng: fill(rng.choice(lines), rng)


LATER_CLEAN: Final[dict[str, tuple[int, Callable[[random.Random], str]]]] = {
    "later sentences": (90, _lines(SENTENCES)),
    "later code": (70, _lines(CODE_LINES)),
    "later identifiers and addresses": (90, _lines(NAMES_LINES)),
}
