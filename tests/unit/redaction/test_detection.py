"""Exemptions are parsed: a secret inside the form of something public is found, and the public thing itself stays."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from importlib import resources
from pathlib import Path

from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.detection import find_public_spans
from agent_memory.redaction.findings import KINDS
from tests.rows import check_rows
from tests.support import scale_examples

ALNUM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lM6"
GITHUB = "gh" + "p_" + ALNUM
AWS = "AK" + "IA" + "QX7ZP3LM9TNV2RWD"
RANDOM = "Xk29sK2lqPzA81LmQ0rT"
HEX = "3f2a9c0b7d184e65af0912bc34de56f789ab0c1d"
PASSWORD = "Tr0ub4dor#3x"
CERTIFICATE = base64.b64encode(bytes.fromhex("308202003082016902") + random.Random(7).randbytes(504)).decode()
SOURCE_MAP = '{"version": 3, "sources": ["a.ts", "app/b.ts"], "mappings": "AAAA,CAAC"}'
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h24v24H0z"/></svg>'
SSH_KEY = bytes.fromhex("0000000b") + b"ssh-ed25519" + bytes.fromhex("00000020") + random.Random(3).randbytes(32)
PNG = b"\x89PNG\r\n\x1a\n" + random.Random(7).randbytes(400)


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def pem(label: str, body: str) -> str:
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


LEAKS = {
    "ARN, token in its resource": (f"use arn:aws:iam::123456789012:role/x,{GITHUB}", GITHUB),
    "ARN, token as its resource": (f"use arn:aws:iam::123456789012:role/{GITHUB}", GITHUB),
    "ARN, key as its resource": (f"use arn:aws:iam::123456789012:user/{AWS}", AWS),
    "ARN, random resource": (f"use arn:aws:iam::123456789012:user/{RANDOM}", RANDOM),
    "ARN, too few fields": (f"use arn:aws:{RANDOM}", RANDOM),
    "ARN, secret as its region": (f"use arn:aws:iam:{RANDOM}:123456789012:user/x", RANDOM),
    "ARN, assignment in its path": (f"use arn:aws:s3:::bucket/password={PASSWORD}", PASSWORD),
    "DID, token as its id": (f"use did:web:{GITHUB}", GITHUB),
    "DID, unknown method": (f"use did:x:{RANDOM}{RANDOM}", RANDOM),
    "DID, path after its id": (f"use did:web:a.example:{RANDOM}", RANDOM),
    "data, text": (f"data:text/plain;base64,{b64('password=' + PASSWORD)}", b64("password=" + PASSWORD)),
    "data, JSON": (f"data:application/json;base64,{b64(json.dumps({'t': GITHUB}))}", b64(json.dumps({"t": GITHUB}))),
    "data, no type": (f"data:;base64,{b64('token: ' + GITHUB)}", b64("token: " + GITHUB)),
    "data, picture that is text": (f"data:image/png;base64,{b64('token: ' + GITHUB)}", b64("token: " + GITHUB)),
    "data, picture that is none": (f"data:image/png;base64,{RANDOM}{RANDOM}", RANDOM),
    "data, token in a picture": (f"data:image/png;base64,{b64(PNG + GITHUB.encode())}", b64(PNG + GITHUB.encode())),
    "data, token after a picture": (f"data:image/png;base64,{b64(PNG)},{GITHUB}", GITHUB),
    "data, percent": (f"data:text/plain,password%3D{PASSWORD.replace('#', '%23')}", PASSWORD.replace("#", "%23")),
    "certificate, assignment inside": (pem("CERTIFICATE", CERTIFICATE[:64] + "password=hunterXy9K2"), "hunterXy9K2"),
    "certificate, token inside": (pem("CERTIFICATE", CERTIFICATE[:60] + "+" + AWS), AWS),
    "certificate, no DER": (pem("CERTIFICATE", RANDOM + RANDOM), RANDOM),
    "marker of no kind": (f"the api key is [redacted:{HEX[:32]}]", HEX[:32]),
    "marker before a value": (f"password=[redacted]{PASSWORD}", PASSWORD),
    "marker left open": (f"[redacted: the password is {PASSWORD}", PASSWORD),
    "the word redacted": (f"password=redacted{PASSWORD}", PASSWORD),
    "angle brackets": ("password = <hunter29Xy>", "hunter29Xy"),
    "braces": ("password = {{hunter29Xy}}", "hunter29Xy"),
    "shell variable": ("password = ${hunter29Xy}", "hunter29Xy"),
    "percent signs": ("password = %hunter29Xy%", "hunter29Xy"),
    "vault": (f"password = vault:{RANDOM}", RANDOM),
    "exclamation mark": (f"password = !{RANDOM}", RANDOM),
    "date before a password": (f"the password is 2024-01-01{RANDOM}", RANDOM),
    "version before a password": (f"the password is 1.2-{RANDOM}", RANDOM),
    "suffix of a file": (f"use {RANDOM}.js there", RANDOM),
    "a sign before it": (f"use #{RANDOM} there", RANDOM),
    "a time after it": (f"use {RANDOM}-20240101T120000 there", RANDOM),
    "ssh key that is none": (f"use AAAA{RANDOM}{RANDOM}", RANDOM),
    "digest of a wrong length": (f"use sha256-{RANDOM}{RANDOM}", RANDOM),
    "ipfs": (f"use ipfs:{RANDOM}{RANDOM}", RANDOM),
    "commit that is the key": (f"commit {HEX} is the api key", HEX),
    "equals sign after it": (f"use {RANDOM}Q== there", RANDOM),
    "label before a password": (f"from {PASSWORD}K2", PASSWORD),
    "identifier with signs": (f"use run_{PASSWORD}K2 there", PASSWORD),
}


@check_rows("name", LEAKS)
def test_a_secret_inside_a_public_form_is_redacted(name: str) -> None:
    text, secret = LEAKS[name]
    assert secret not in SecretRedactor().redact(text).text


CLEAN = {
    "ARN of a role": "use arn:aws:iam::123456789012:role/service-role/lambda-exec-2024",
    "ARN of a key": "use arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "ARN of a secret": "read arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db/Password-a1B2c3",
    "ARN of a balancer": "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/app/my-lb/50dc6c495c0c9188",
    "ARN of a bucket": "copy from arn:aws:s3:::release-artifacts/2024/06/build-1234.tar.gz",
    "ARN of a distribution": "arn:aws:cloudfront::123456789012:distribution/E2QWRUHAPOMQZL",
    "ARN in China": "arn:aws-cn:sns:cn-north-1:123456789012:alerts",
    "ARN of a task": "arn:aws:ecs:us-east-1:123456789012:task/prod/0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "ARNs in a list": "arn:aws:iam::123456789012:role/a,arn:aws:iam::123456789012:role/b",
    "DID by key": "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
    "DID of a site": "did:web:example.com:user:alice",
    "DID of an account": "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
    "DID of a chain": "did:ethr:0xb9c5714089478a327f09197987f16f9e5d936e8a",
    "DID with a fragment": "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK#keys-1",
    "data, picture": f"the logo is data:image/png;base64,{b64(PNG)}",
    "data, font": f"data:font/woff2;base64,{b64(b'wOF2' + random.Random(5).randbytes(300))}",
    "data, source map": f"data:application/json;charset=utf-8;base64,{b64(SOURCE_MAP)}",
    "data, drawing": f"data:image/svg+xml;base64,{b64(DRAWING)}",
    "certificate": pem("CERTIFICATE", CERTIFICATE),
    "certificate in one line": f"ca: {CERTIFICATE}",
    "digest": f"integrity sha256-{b64(random.Random(3).randbytes(32))}",
    "digest of a module": f"golang.org/x/net v0.1.0 h1:{b64(random.Random(3).randbytes(32))}",
    "content address": "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG",
    "ssh key": f"ssh-ed25519 {b64(SSH_KEY)} ann@host",
    "commit": f"fixed in commit {HEX}",
    "placeholder": "password = <your-password>",
    "template": "password = {{ .Values.oauth2.token }}",
    "asset": "see index-BqX9k2Lm.js and chunk.3f2a9c0b.css",
    "backup": "restore backup-prod-20240101T120000Z.tar.gz",
    "identifier": "customer cus_NffrFeUfNV2Hib9x paid",
    "markers": "the password is [redacted:password] and the key [redacted:api-key]",
}


@check_rows("name", CLEAN)
def test_a_public_value_is_left_as_it_is(name: str) -> None:
    assert SecretRedactor().redact(CLEAN[name]).text == CLEAN[name]


def test_public_spans_of_long_text_take_linear_work() -> None:
    for part in ("arn:aws:", "did:key:z", "data:;base64,", "-----BEGIN CERTIFICATE-----\n", "arn:aws:a:::" + "x:" * 9):
        assert list(find_public_spans(part * 4_000)) is not None


def test_random_pictures_are_left_as_they_are() -> None:
    rng = random.Random(11)
    touched = 0
    for _ in range(5):
        text = f"data:image/jpeg;base64,{b64(bytes.fromhex('ffd8ffe0') + rng.randbytes(60_000))}"
        touched += SecretRedactor().redact(text).text != text
    assert touched == 0


@check_rows("seed", range(scale_examples(8)))
def test_a_token_next_to_any_public_form_is_redacted(seed: int) -> None:
    rng = random.Random(seed)
    token = "gh" + "p_" + "".join(rng.choices(string.ascii_letters + string.digits, k=36))
    for text in CLEAN.values():
        for joint in (",", ":", "/", "\n", " ", ";", "#"):
            assert token not in SecretRedactor().redact(f"{text}{joint}{token}").text


def test_kinds_of_detectors_are_kinds_of_markers() -> None:
    folder = Path(str(resources.files("agent_memory.redaction")))
    paths = (*folder.glob("*.py"), *folder.glob("patterns/providers.yaml"))
    source = "\n".join(path.read_text("utf-8") for path in paths)
    forms = (r'SecretFinding\([^\n]*, "([a-z-]+)"\)', r'_Rule\([^\n]*?_[A-Z_]+, "([a-z-]+)"', r"- kind: ([a-z-]+)\n")
    kinds = {kind for form in forms for kind in re.findall(form, source)}
    assert len(kinds) > 40
    assert kinds <= KINDS
