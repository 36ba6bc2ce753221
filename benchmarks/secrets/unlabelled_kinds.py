"""Kinds of secrets written after the rules on unlabelled tokens, before the redactor was tried on any of them."""

# ruff: noqa: E501 - one kind a line
from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

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
    from collections.abc import Callable

MAIN, RARE, PEM, LINKS, CONF, LINE, NAMES, CODE, STRONG, PLAIN, BARE, NUMBERS, HIDDEN, ENCODED = GROUPS


def _signed(rng: random.Random) -> str:
    """Return a password as a generator of a browser makes it."""
    return (
        fill("{a5}", rng)
        + rng.choice("-!#%&*+=?@^~")
        + fill("{a6}", rng)
        + rng.choice("-!#%&*+=?@^~")
        + fill("{a4}", rng)
    )


def _phrase(rng: random.Random) -> str:
    return rng.choice((" ", "-", ".")).join(rng.sample(WORDS, 5))


def _pgp(rng: random.Random) -> Planted:
    lines = key_lines(rng, 5)
    begin, end = "-----BEGIN PGP PRIVATE" + " KEY BLOCK-----", "-----END PGP PRIVATE" + " KEY BLOCK-----"
    return Planted("\n".join([begin, "Comment: laptop", "", *lines, "=aB3d", end]), tuple(lines))


def _indented(rng: random.Random) -> Planted:
    lines = key_lines(rng, 6)
    rows = ["-----BEGIN EC PRIVATE" + " KEY-----", *lines, "-----END EC PRIVATE" + " KEY-----"]
    return Planted("tls.key: |\n" + "\n".join(f"    {row}" for row in rows) + "\nca.crt: none", tuple(lines))


def _cut(rng: random.Random) -> Planted:
    lines = key_lines(rng, 6)
    return Planted("-----BEGIN PRIVATE" + " KEY-----\n" + "\n".join(lines) + "\n[... 14 more lines]", tuple(lines))


def _one_line(rng: random.Random) -> Planted:
    lines = key_lines(rng, 4)
    text = " ".join(["-----BEGIN RSA PRIVATE" + " KEY-----", *lines, "-----END RSA PRIVATE" + " KEY-----"])
    return Planted(f'KEY="{text}"', tuple(lines))


def _jwk(rng: random.Random) -> Planted:
    secret = fill("{u43}", rng)
    return Planted(
        json.dumps({"kty": "EC", "crv": "P-256", "x": fill("{u43}", rng), "y": fill("{u43}", rng), "d": secret}),
        (secret,),
    )


def _docker_config(rng: random.Random) -> Planted:
    line = base64.b64encode(f"{rng.choice(WORDS)}:{_signed(rng)}".encode()).decode()
    return Planted(json.dumps({"auths": {"ghcr.io": {"auth": line}}}), (line,))


def _secret_manifest(rng: random.Random) -> Planted:
    first, second = (base64.b64encode(strong(rng).encode()).decode() for _ in range(2))
    text = f"kind: Secret\nmetadata:\n  name: db\ndata:\n  password: {first}\n  admin-password: {second}\n"
    return Planted(text, (first, second))


def _table(rng: random.Random) -> Planted:
    rows = [(rng.choice(WORDS), strong(rng)) for _ in range(3)]
    body = "\n".join(f"{name}\t{value}\t2026-02-11" for name, value in rows)
    return Planted(f"Dienst\tKennwort\tgeändert\n{body}", tuple(value for _, value in rows))


def _html_table(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"<tr><th>Password</th><td>{secret}</td></tr>", (secret,))


def _numbered_codes(rng: random.Random) -> Planted:
    codes = [fill("{l4}-{l4}", rng) for _ in range(6)]
    body = "\n".join(f"{at}) {code}" for at, code in enumerate(codes, 1))
    return Planted(f"GitHub recovery codes, keep safe:\n{body}", tuple(codes))


def _numbered_words(rng: random.Random) -> Planted:
    words = rng.sample(WORDS, 12)
    return Planted(
        "Wallet seed: " + " ".join(f"{at}. {word}" for at, word in enumerate(words, 1)),
        tuple(words[4:7]),
    )


def _spelled(rng: random.Random) -> Planted:
    secret = fill("{W}{d4}", rng)
    return Planted(f"the password, spelled: {' '.join(secret)}", (" ".join(secret),))


def _hidden(rng: random.Random) -> Planted:
    secret = fill("glpat-{a20}", rng)
    worn = "\u2063".join(secret)
    return Planted(f"runner uses {worn} today", (worn, worn[16:]))


def _wide(rng: random.Random) -> Planted:
    secret = "".join(chr(ord(letter) + 0xFEE0) for letter in fill("{W}{d4}", rng))
    return Planted(f"\uff30\uff21\uff33\uff33\uff37\uff2f\uff32\uff24\uff1a{secret}", (secret,))


def _greek(rng: random.Random) -> Planted:
    secret = strong(rng)
    return Planted(f"p\u03b1ssw\u03bfrd = {secret}", (secret,))


def _concatenated(rng: random.Random) -> Planted:
    first, second = fill("ghp_{a18}", rng), fill("{a18}", rng)
    return Planted(f'token = "{first}" + \\\n    "{second}"', (first, second))


def _ascii_list(rng: random.Random) -> Planted:
    worn = ",".join(str(ord(letter)) for letter in f"password={strong(rng)}")
    return Planted(f"String.fromCharCode({worn})", (worn,))


def _encoded(frame: str, alphabet: str) -> Callable[[random.Random], Planted]:
    def make(rng: random.Random) -> Planted:
        plain = frame.format(strong(rng)).encode()
        line = {
            "64": base64.b64encode(plain).decode(),
            "url": base64.urlsafe_b64encode(plain).decode().rstrip("="),
            "16": plain.hex().upper(),
            "32": base64.b32encode(plain).decode(),
            "85": base64.b85encode(plain).decode(),
            "x": "".join(f"\\x{byte:02x}" for byte in plain),
            "%": "".join(f"%{byte:02X}" for byte in plain),
        }[alphabet]
        return Planted(rng.choice(("value: {}", "echo {} | decode", "it was stored as {} there")).format(line), (line,))

    return make


FRESH: Final[tuple[Kind, ...]] = (
    token(MAIN, "GitHub fine-grained", "github_pat_{a22}_{a59}"),
    token(MAIN, "OpenAI project", "sk-proj-{u74}T3BlbkFJ{u74}"),
    token(MAIN, "Google API key", "AIzaSy{u33}"),
    token(MAIN, "Slack bot", "xoxb-{d11}-{d13}-{a24}"),
    token(MAIN, "PyPI", "pypi-AgEIcHlwaS5vcmc{u80}"),
    token(MAIN, "Docker Hub", "dckr_pat_{u27}"),
    around(MAIN, "AWS in INI", "[default]\naws_access_key_id = AKIA{A16}\naws_secret_access_key = {S}\n", value="{b40}"),
    around(MAIN, "AWS in code", "boto3.client('s3', aws_secret_access_key='{S}')", "new AWS.Credentials('AKIA{A16}', '{S}')", value="{b40}"),
    around(MAIN, "Azure storage", "DefaultEndpointsProtocol=https;AccountName={w};AccountKey={S};EndpointSuffix=core.windows.net", value="{b86}=="),
    around(MAIN, "GCP HMAC", "gs_secret_access_key = {S}", "GCS secret: {S}", value="{b40}"),
    around(MAIN, "Azure client secret", "AZURE_CLIENT_SECRET={S}", "az client secret is {S}", value="{a3}8Q~{u34}"),
    around(MAIN, "Twilio SID and token", "Twilio: AC{h32} / {S}", "client = Client('AC{h32}', '{S}')", value="{h32}"),
    token(RARE, "Fly.io", "FlyV1 fm2_{b120}", "fo1_{u43}"),
    token(RARE, "Resend", "re_{a8}_{a24}"),
    token(RARE, "Buildkite", "bkua_{h40}"),
    token(RARE, "Netlify", "nfp_{a36}"),
    token(RARE, "Railway", "{uuid}", frames=("railway token {}", "RAILWAY_TOKEN={}")),
    token(RARE, "Neon", "napi_{l64}"),
    token(RARE, "Tailscale", "tskey-auth-{a12}CNTRL-{a32}"),
    token(RARE, "ElevenLabs", "sk_{h48}"),
    token(RARE, "Groq", "gsk_{a52}"),
    token(RARE, "LangSmith", "lsv2_pt_{h32}_{h10}"),
    token(RARE, "1Password", "ops_eyJ{u200}"),
    token(RARE, "Clerk", "sk_live_{a42}"),
    token(RARE, "Upstash", "A{a55}=", frames=("UPSTASH_REDIS_REST_TOKEN={}", "upstash token: {}")),
    token(RARE, "Unkey", "unkey_{a22}", frames=("we use {} for rate limits", "key {} is live")),
    token(RARE, "Inngest", "signkey-prod-{h64}", frames=("sign with {}", "INNGEST={}")),
    around(RARE, "Bugsnag", "bugsnag api key: {S}", "notifier key {S} for bugsnag", value="{h32}"),
    around(RARE, "OpenWeather", "appid={S}&units=metric", "the openweather key is {S}", value="{h32}"),
    around(RARE, "TMDB", "tmdb v3 key {S}", "themoviedb api key = {S}", value="{h32}"),
    around(RARE, "Mapbox", "mapbox secret sk.eyJ1{S}.{u22}", value="{u60}"),
    around(RARE, "Home Assistant webhook", "POST https://{w}.ui.nabu.casa/api/webhook/{S}", value="{h64}"),
    around(RARE, "Pusher", 'pusher = Pusher(app_id="{d7}", key="{h20}", secret="{S}")', value="{h20}"),
    around(RARE, "unknown vendor", "our {w}stack access key is {S}", "{W}Cloud token: {S}", "API-Key der {W} GmbH: {S}", value="{a28}"),
    Kind(PEM, "PGP", _pgp),
    Kind(PEM, "indented in YAML", _indented),
    Kind(PEM, "cut off", _cut),
    Kind(PEM, "in one line", _one_line),
    Kind(PEM, "JWK", _jwk),
    around(LINKS, "AMQP", "amqps://{w}:{S}@{w}.rmq.cloudamqp.com/{w}", value="{u32}"),
    around(LINKS, "Snowflake", "snowflake://{w}:{S}@xy{d5}.eu-central-1/db?warehouse={w}"),
    around(LINKS, "LDAP", "ldap://cn=admin,dc={w}:{S}@ldap.{w}.io:389", value="{a14}"),
    around(LINKS, "SMTP", "EMAIL_URL=smtps://no-reply%40{w}.io:{S}@smtp.{w}.io:465", value="{a16}"),
    around(LINKS, "JDBC", "jdbc:postgresql://db/{w}?user={w}&password={S}", "jdbc:mysql://db/{w}?user={w}&password={S}&useSSL=true"),
    around(LINKS, "git remote", "git clone https://{w}:{S}@git.{w}.io/{w}.git", value="{a30}"),
    around(LINKS, "ODBC", "DSN=Sales;UID={w};PWD={S}", "Driver={SQL};Server=db;Uid={w};Pwd={S};"),
    around(LINKS, "CouchDB", "http://admin:{S}@127.0.0.1:5984/_all_dbs"),
    Kind(CONF, "Kubernetes secret", _secret_manifest),
    Kind(CONF, "docker config", _docker_config),
    Kind(CONF, "columns by tabs, German", _table),
    Kind(CONF, "table of HTML", _html_table),
    around(CONF, "wp-config", "define('DB_PASSWORD', '{S}');", "define( 'AUTH_KEY', '{S}' );", value=_signed),
    around(CONF, "Ansible inventory", "web1 ansible_host=10.0.0.{d1} ansible_user=root ansible_ssh_pass={S}", "ansible_become_password: {S}"),
    around(CONF, "HCL", 'admin_password = "{S}"', 'secret_string = "{S}"'),
    around(CONF, "plist", "<key>Password</key>\n<string>{S}</string>", "<key>apiToken</key><string>{S}</string>"),
    around(CONF, "Tomcat", '<user username="{w}" password="{S}" roles="manager-gui"/>'),
    around(CONF, "hostapd", "ssid={w}\nwpa_passphrase={S}\nwpa=2", value="{w}{d4}"),
    around(CONF, "TOML", '[auth]\npass = "{S}"', '[registry]\ntoken = "{S}"', value="{a18}"),
    around(CONF, "Java", 'ds.setPassword("{S}");', '.withPassword("{S}")', 'new UsernamePasswordToken("{w}", "{S}")'),
    around(CONF, "JavaScript", "auth: {{ user: '{w}', pass: '{S}' }}".replace("{{", "{ ").replace("}}", " }"), 'const PW = "{S}";'),
    around(CONF, "Python tuple", 'auth=("{w}", "{S}")', "requests.get(url, auth=('{w}', '{S}'))"),
    around(LINE, "psql", "PGPASSWORD={S} psql -h db -U {w}", "PGPASSWORD='{S}' pg_dump {w} > x.sql"),
    around(LINE, "docker run", "docker run -e POSTGRES_PASSWORD={S} postgres:16", "docker run --env MYSQL_ROOT_PASSWORD='{S}' mysql"),
    around(LINE, "helm", "helm install {w} ./chart --set auth.rootPassword={S}", "helm upgrade x y --set-string db.password='{S}'"),
    around(LINE, "lftp", "lftp -u {w},{S} sftp://{w}.io", "lftp -e 'open -u {w},{S} ftp.{w}.io'"),
    around(LINE, "openssl", "openssl enc -aes-256-cbc -k {S} -in a -out b", "openssl pkcs12 -export -passout pass:{S}"),
    around(LINE, "ipmitool", "ipmitool -I lanplus -H 10.0.0.{d1} -U ADMIN -P {S} power status"),
    around(LINE, "kinit", "echo {S} | kinit {w}@CORP.LOCAL", "echo '{S}' | cryptsetup open /dev/sda2 data"),
    around(LINE, "xfreerdp", "xfreerdp /v:10.0.0.{d1} /u:{w} /p:{S}", "cmdkey /add:{w} /user:{w} /pass:{S}"),
    around(LINE, "wget", "wget --user={w} --password={S} https://{w}.io/x", "wget --http-password='{S}' https://{w}.io"),
    around(LINE, "SQL Server", "CREATE LOGIN {w} WITH PASSWORD = '{S}';", "GRANT ALL ON x.* TO 'y'@'%' IDENTIFIED BY \"{S}\";"),
    around(NAMES, "dotenv", "SMTP_PASS={S}", "JWT_SIGNING_KEY={S}", "NEXTAUTH_SECRET={S}", value="{bytes32}"),
    around(NAMES, "UUID as value", "SERVICE_TOKEN={S}", "export CLIENT_SECRET={S}", "API_KEY={S}", value="{uuid}"),
    around(NAMES, "short names", "REDISPASS={S}", "export ADMIN_PW={S}", "SUDO_PASS='{S}'", "LDAP_BIND_PW={S}"),
    around(NAMES, "systemd", "Environment=DB_PASS={S}", 'Environment="GH_TOKEN={S}"', value="{W}{d3}{a8}"),
    Kind(CODE, "numbered", _numbered_codes),
    Kind(CODE, "seed words with numbers", _numbered_words),
    many(CODE, "in French", "codes de secours : {}", lambda rng: fill("{d4}-{d4}", rng), 4, ", "),
    many(CODE, "in Polish", "kody zapasowe: {}", lambda rng: fill("{d8}", rng), 3, " "),
    around(CODE, "one-time", "your verification code is {S}", "Ihr Sicherheitscode lautet {S}", "G-{S} is your Google code", value="{d6}"),
    around(CODE, "alarm", "the alarm code is {S}", "to disarm type {S}#", "alarm: {S}, dog is friendly", value="{d4}"),
    around(CODE, "phone", "my phone unlocks with {S}", "iPad passcode {S}", "voicemail PIN {S}", value="{d6}"),
    around(CODE, "TOTP", "TOTP secret: {S}", "MFA seed {S}", "enter this key in the app: {S}", value="{332}"),
    around(CODE, "licence", "Windows key {S}", "license: {S}", "product key is {S}", value="{A5}-{A5}-{A5}-{A5}-{A5}"),
    around(STRONG, "generated by a browser", "new password: {S}", "the router's password is {S}", "pass = {S}", value=_signed),
    around(STRONG, "Czech and Hungarian", "heslo k serveru je {S}", "a jelszó: {S}", "{S} a wifi jelszava"),
    around(STRONG, "Greek and Hebrew", "\u03bf κωδικός είναι {S}", "הסיסמה היא {S}", "{S} είναι \u03bf κωδικός"),
    around(STRONG, "Thai and Indonesian", "รหัสผ่านคือ {S}", "kata sandi wifi: {S}", "{S} adalah kata sandinya"),
    around(STRONG, "Finnish and Danish", "salasana on {S}", "adgangskoden er {S}", "passordet er {S}"),
    around(STRONG, "Ukrainian and Persian", "пароль до бази — {S}", "رمز عبور: {S}", "گذرواژه {S} است"),
    around(STRONG, "possessive", "{W}'s password is {S}", "Danas Passwort: {S}", "password for {w}@{w}.io -> {S}"),
    around(STRONG, "in a mail", "Hi,\nuser: {w}\npw: {S}\nCheers", "Username: {w}\nPassword: {S}\nURL: https://{w}.io"),
    many(STRONG, "numbered", "The passwords:\n1. {}", strong, 3, "\n2. "),
    many(STRONG, "three in a row", "passwords are {}", strong, 3, ", "),
    around(STRONG, "after and below", "{S}\n^ that's the db password", "# db password\n{S}", "password for prod below\n\n{S}"),
    around(PLAIN, "copula in languages", "il wachtwoord is {S}", "la password è {S}", "a senha é {S}", "lösenordet är {S}", "пароль {S}", value=letters),
    around(PLAIN, "phrase", "the passphrase is {S}", "LUKS passphrase: {S}", "disk password: {S}", value=_phrase),
    around(PLAIN, "quoted", 'password is "{S}"', "the wifi password is '{S}'", "use '{S}' as password", value=letters),
    around(PLAIN, "assigned", "password={S}", "DB_PASSWORD={S}", "--password {S}", "password: {S}", value=letters),
    around(PLAIN, "set to", "I set the password to {S}.", "changed the root password to {S}", "we picked {S} as password", value=letters),
    around(BARE, "pair in chat", "login {w}@{w}.io / {S}", "it's {w} and {S} for the NAS", "user {w}, {S}"),
    around(BARE, "only the value", "{S}", "use {S}", "try {S} then", "it is {S} now, sorry"),
    around(BARE, "things", "the printer wants {S}", "the safe takes {S}", "for netflix: {S}", "TeamViewer {d9} {S}"),
    around(NUMBERS, "card with date", "Visa {S} exp 09/28 cvv {d3}", "cc: {S}", "Karte {S}, gültig bis 11/27", value="4111 1111 1111 1111"),
    around(NUMBERS, "IBAN", "IBAN {S}", "bitte auf {S} überweisen", "{S} is my account", value="DE89370400440532013000"),
    around(NUMBERS, "SSN", "social security: {S}", "SSN is {S}", "his social is {S}", value="5{d1}2-4{d1}-1{d3}"),
    around(NUMBERS, "passport", "passport no. {S}", "Reisepass {S}", "my passport: {S}", value="C{d1}X{d6}"),
    around(NUMBERS, "Nordic and Spanish", "personnummer {S}", "CPR: {S}", "mi DNI es {S}", value="{d6}-{d4}"),
    around(NUMBERS, "Indian", "Aadhaar {S}", "my aadhaar number is {S}", value="{d4} {d4} {d4}"),
    around(NUMBERS, "bank", "account number {S}", "sort code 20-{d2}-{d2}, account {S}", "routing number 021000021, acct {S}", value="{d8}"),
    Kind(HIDDEN, "spelled out", _spelled),
    Kind(HIDDEN, "invisible between all", _hidden),
    Kind(HIDDEN, "full width", _wide),
    Kind(HIDDEN, "Greek letters", _greek),
    Kind(HIDDEN, "concatenated", _concatenated),
    Kind(HIDDEN, "codes of characters", _ascii_list),
    around(HIDDEN, "leet label", "p455w0rd: {S}", "pa55word = {S}", "passw*rd is {S}", "p.a.s.s.w.o.r.d: {S}"),
    around(HIDDEN, "quoted mail", "> > password:\n> > {S}", "| password\n| {S}", "// password:\n// {S}"),
    around(HIDDEN, "marked", "password: ~~{S}~~", "password: <code>{S}</code>", "password: **`{S}`**", "password: <b>{S}</b>"),
    Kind(ENCODED, "base64", _encoded("password: {}", "64")),
    Kind(ENCODED, "base64 of a pair", _encoded("admin:{}", "64")),
    Kind(ENCODED, "base64 for addresses", _encoded('{{"user":"bob","password":"{}"}}', "url")),
    Kind(ENCODED, "hex in capitals", _encoded("PASSWORD={}", "16")),
    Kind(ENCODED, "base32", _encoded("password={}", "32")),
    Kind(ENCODED, "bytes of C", _encoded("pass={}", "x")),
    Kind(ENCODED, "percent", _encoded("secret={}", "%")),
)  # fmt: skip
