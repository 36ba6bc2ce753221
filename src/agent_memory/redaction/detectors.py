"""The seam to detect-secrets: its provider detectors, without verification, network or global settings.

Left out on purpose: its keyword and entropy detectors (they need quotes or whole files; `keywords.py` reads prose), and
those whose patterns take quadratic time on hostile input (JWT, OpenAI, npm, IBM), which `providers.py` covers.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import types
from typing import TYPE_CHECKING, Any, Final

from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import MIN_RANDOM_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLUGINS: Final = (
    ("artifactory", "ArtifactoryDetector", "artifactory-token"),
    ("aws", "AWSKeyDetector", "aws-key"),
    ("azure_storage_key", "AzureStorageKeyDetector", "azure-key"),
    ("discord", "DiscordBotTokenDetector", "discord-token"),
    ("github_token", "GitHubTokenDetector", "github-token"),
    ("gitlab_token", "GitLabTokenDetector", "gitlab-token"),
    ("mailchimp", "MailchimpDetector", "mailchimp-key"),
    ("pypi_token", "PypiTokenDetector", "pypi-token"),
    ("sendgrid", "SendGridDetector", "sendgrid-key"),
    ("slack", "SlackDetector", "slack-token"),
    ("square_oauth", "SquareOAuthDetector", "square-token"),
    ("stripe", "StripeDetector", "stripe-key"),
    ("telegram_token", "TelegramBotTokenDetector", "telegram-token"),
    ("twilio", "TwilioKeyDetector", "twilio-key"),
)
# What all of them find, and most sentences do not have: without it none is asked, which saves 20 us a sentence.
_LIKE_A_TOKEN: Final = re.compile(rf"(?<!\S)(?=\S{{{MIN_RANDOM_CHARS}}})\S*?\d")


class _ReadWhenUsed(types.ModuleType):
    """Stands for a module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@functools.cache
def _plugins() -> tuple[tuple[str, Any], ...]:
    """Import and build the detectors once, at first use.

    They import `requests` to verify what they find, which is never done here. Reading it takes most of the time that
    they take, and opens a socket: urllib3 binds ::1 to see whether there is IPv6.
    """
    stand_in = _ReadWhenUsed("requests")
    sys.modules.setdefault("requests", stand_in)
    try:
        return tuple(
            (kind, getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)())
            for module, name, kind in _PLUGINS
        )
    finally:  # whoever else imports it gets the module itself
        if sys.modules.get("requests") is stand_in:
            del sys.modules["requests"]


def find_known_tokens(text: str) -> Iterator[Finding]:
    """Yield what detect-secrets' provider detectors find, each occurrence of it."""
    if not _LIKE_A_TOKEN.search(text):
        return
    for kind, plugin in _plugins():
        for secret in set(plugin.analyze_string(text)):
            value = secret.strip()
            if len(value) < MIN_RANDOM_CHARS or not any(c.isdigit() for c in value):  # a word, not a token
                continue
            named = "slack-webhook" if "hooks.slack" in value else kind
            for match in re.finditer(re.escape(value), text):
                yield Finding(*match.span(), named)
