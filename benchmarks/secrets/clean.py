"""Statements without a secret, by class: what a redactor must leave as it is."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from benchmarks.secrets.frames import ALNUM, WORDS, fill

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SENTENCES: Final = """\
The password field is required on the login page.
Authorization: header is required for every request.
Passwords must have at least twelve characters.
We rotate the API keys every ninety days.
The token expires after {d4} seconds.
Our access token lives for 15 minutes, the refresh token for 30 days.
The secret to a good {w} cake is butter.
Use a password manager; never send a password by mail.
The user forgot the password and asked for a reset.
das Passwort ist abgelaufen
le mot de passe est trop court
la contrase\u00f1a es obligatoria
a senha \u00e9 inv\u00e1lida
\u30d1\u30b9\u30ef\u30fc\u30c9\u306f8\u6587\u5b57\u4ee5\u4e0a\u3067\u3059
The key insight is that caching {w} pages halves the latency.
We store secrets in Vault under kv/{w}/payments.
She prefers short answers and {w} tea.
The PIN pad on the third floor is broken.
Two-factor authentication is mandatory since March {d1}.
The deploy token is kept in the settings of the CI as DEPLOY_TOKEN.
Sign in with your {w} account and choose a password.
The session cookie is set by the proxy.
Decision: passwords are hashed with argon2id, parameters m=65536, t=3.
The pass rate went from {d2}% to 98%.
The public key is published at https://{w}.example/keys.
API key: see the vault entry "{w}-prod".
password: (stored in 1Password)
The wifi password is on the whiteboard.
Bob lost his key card on {d1} May.
The seed of the random generator is {d5}.
Basic authentication is switched off.
Bearer tokens are checked by the gateway.
Meeting with {W} at {d1}:30 about the {w} release.
The password for the {w} server was changed yesterday.
use the password manager as the source of truth
The cookie banner is the legal team's job.
Two of the recovery codes were used; print new ones.
my password policy is strict: no reuse
The PIN is printed on the letter.
The secret is to start early.
social security numbers are never logged
the passphrase should be easy to remember
Please send the invoice to accounting by Friday, not to {W}.
We picked PostgreSQL because the reporting team needs window functions.
""".splitlines()
CODE: Final = """\
password = getpass.getpass()
api_key = os.environ["OPENAI_API_KEY"]
token = request.headers.get("Authorization")
def login(user: str, password: str) -> Token:
if (password.length < 8) throw new Error("too short");
const secret = process.env.SESSION_SECRET;
SELECT id, password_hash FROM users WHERE email = ?
self.token = token
parser.add_argument("--token", required=True)
key = f"user:{user_id}:v2"
export PATH=$PATH:/opt/{w}/bin
DB_PASSWORD=${DB_PASSWORD}
password: ${{ secrets.DB_PASSWORD }}
kubectl get secret {w}-tls -o yaml
for token in tokenizer(text): count[token] += 1
assert response.status_code == 200, response.text
print(hashlib.sha256(content).hexdigest())
auth = HTTPBasicAuth(user, password)
const {{ data, error }} = await client.from("{w}").select("*")
return cache.get(key) or compute(key)
<input type="password" name="password" autocomplete="off">
"scripts": {"build": "vite build", "test": "vitest run"}
git commit -m "Rotate the {w} token"
docker run -p 8080:80 -v /data/{w}:/srv nginx:1.27
raise ValueError("secret must not be empty")
class PasswordResetForm(forms.Form):
max_tokens: 4096
np.random.seed(20{d2})
curl -H "Authorization: Bearer $TOKEN" https://api.{w}.io
password_file: ./secrets/db
mysql -u root -p {w}
""".splitlines()
IDENTIFIERS: Final = (
    "commit {h40} fixed it",
    "see {h7} and {h12}",
    "request {uuid} failed",
    "trace id {h32}",
    "the image is sha256:{h64}",
    "md5 {h32} of the archive",
    "order number {d10} was shipped",
    "order {d16} arrived",
    "ticket PROJ-{d4}",
    "invoice INV-2026-{d5}",
    "session 01J{A23} ended",
    "pod {w}-{h10}-{x5} restarted",
    "arn:aws:iam::{d12}:role/{w}-deploy",
    "bucket s3://{w}-backups-{d4}/2026/03",
    "the build is {w}_{d8}.{d1}",
    "vpc-{h17} has two subnets",
    "tracking number 1Z{A16}",
    "call +49 30 {d7}",
    "ISBN 978-3-16-148410-{d1}",
    "serial number SN{d8}",
    "PO-{d6} is open",
    "user id {d18}",
    'Etag "{h32}"',
    "getUserAccountSettingsByIdAndTenantV{d1}Async",
    "chat id -100{d10}",
)
PLACES: Final = (
    "/usr/local/lib/python3.11/site-packages/{w}/{w}_{w}.py",
    "src/{w}/{w}/test_{w}.py:{d3}",
    "C:\\Users\\{w}\\AppData\\{w}.log",
    "https://github.com/{w}/{w}/blob/main/src/{w}.py#L{d2}-L{d3}",
    "https://{w}.example/search?q={w}+{w}&page={d1}",
    "https://{w}.example/item?key={w}",
    "https://{w}.example/docs?key=getting-started-{d1}",
    "https://{w}.io/a?key={d6}",
    "https://maps.example/?key={w}-{w}&zoom=12",
    "10.{d2}.0.{d2}:5432",
    "fe80::{h4}:{h4}:{h4}:{h4}",
    "192.168.1.{d2}/24",
    "http://localhost:{d4}/{w}",
    "{w}@{w}.example",
    "~/.ssh/id_ed25519",
    "s3://{w}/{w}/part-0000{d1}.parquet",
    "/var/log/{w}/{w}-2026-03-0{d1}.log.gz",
    "https://www.youtube.com/watch?v={u11}",
    "https://doi.org/10.{d4}/{w}.2024.{d4}",
)
VERSIONS: Final = (
    "{w} 2.{d1}.{d2}-beta.4+build.{d3}",
    "amplifier-core=={d1}.0.2",
    "python:3.1{d1}-slim-bookworm",
    '"{w}": "^{d1}.{d2}.0"',
    "v{d1}.{d1}.{d2}-rc{d1}",
    "kernel 6.{d1}.0-{d2}-generic",
    "{w}-{w}-{d1}.{d1}.tar.gz",
    "{w}.js@{d2}.{d1}.{d1}",
    "CUDA 12.{d1} on an H100",
    "Go 1.2{d1}.{d1}",
    "pip install {w}-{w}>={d1}.{d1},<{d2}",
    "release 2026.0{d1}.1{d1}",
    "Ubuntu 24.04.{d1} LTS",
    "pnpm@9.{d1}.{d1}",
)


def _picture(rng: random.Random) -> str:
    head = rng.choice((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0\0\x10JFIF", b"GIF89a"))
    return f"![logo](data:image/png;base64,{base64.b64encode(head + rng.randbytes(rng.randrange(60, 400))).decode()})"


def _certificate(rng: random.Random) -> str:
    kind = rng.choice(("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY"))
    lines = [fill("{b64}", rng) for _ in range(rng.randrange(4, 12))]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, fill("{b20}==", rng), f"-----END {kind}-----"])


def _hash(rng: random.Random) -> str:
    digest = hashlib.sha512(rng.randbytes(8)).digest()
    text = base64.b64encode(digest).decode()
    return rng.choice(
        (
            f'"integrity": "sha512-{text}"',
            f"--hash=sha256:{digest[:32].hex()}",
            f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{''.join(rng.choices(ALNUM, k=43))} bob@{rng.choice(WORDS)}",
        )
    )


def _lines(lines: tuple[str, ...] | list[str]) -> Callable[[random.Random], str]:
    return lambda rng: fill(rng.choice(lines), rng)


CLEAN: Final[dict[str, tuple[int, Callable[[random.Random], str]]]] = {
    "sentences": (150, _lines(SENTENCES)),
    "code": (110, _lines(CODE)),
    "identifiers": (110, _lines(IDENTIFIERS)),
    "paths and addresses": (100, _lines(PLACES)),
    "versions and packages": (60, _lines(VERSIONS)),
    "pictures": (30, _picture),
    "certificates and public keys": (30, _certificate),
    "checksums and ssh public keys": (30, _hash),
}
"""Class to how many of it a run has, and how one is made."""
