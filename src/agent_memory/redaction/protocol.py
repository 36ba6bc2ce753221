"""What a redactor is and what it answers. No detection here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

MARKER_PREFIX: Final = "[redacted:"
_KIND_NAMES: Final = """
    age-key airtable-token anthropic-key api-key artifactory-token atlassian-token authorization aws-key azure-key
    basic-auth bearer-token code connection-password cookie credit-card databricks-token digitalocean-token
    discord-token docker-token dropbox-token facebook-token github-token gitlab-token google-key grafana-token
    hashicorp-token high-entropy huggingface-token iban jwt license-key mailchimp-key mailgun-key named-secret
    npm-token openai-key password password-hash personal-number private-key pypi-token seed-phrase sendgrid-key
    sentry-dsn sentry-token shopify-token signed-url slack-token slack-webhook square-token stripe-key telegram-token
    token totp-seed twilio-key url-token webhook webhook-secret
"""
KINDS: Final = frozenset(_KIND_NAMES.split())
"""Kinds of secrets that a marker names, older versions' too."""
MARKER: Final = re.compile(rf"\[redacted:(?:{'|'.join(sorted(KINDS))})\]")
"""What takes the place of a secret. Any other text in such brackets is searched like all text."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and what kinds were taken out of it (each once, in order of appearance)."""

    text: str
    kinds: tuple[str, ...] = ()


class Finding(NamedTuple):
    """One secret: `text[start:end]`, and its kind in kebab-case."""

    start: int
    end: int
    kind: str


@runtime_checkable
class Redactor(Protocol):
    """Anything that takes secrets out of text. Must be idempotent and must not raise on any string."""

    def redact(self, text: str) -> Redaction:
        """Return `text` with each secret replaced by `[redacted:<kind>]`."""
        ...
