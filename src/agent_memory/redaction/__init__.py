"""Secrets out of text, before anything is stored, logged or emitted. Pure: no file, no network, no verification."""

from agent_memory.redaction.labels import redact_label, redact_path
from agent_memory.redaction.protocol import Redaction, Redactor
from agent_memory.redaction.quoting import quoted, shortened
from agent_memory.redaction.redactor import SecretRedactor
from agent_memory.redaction.values import redact_value

__all__ = [
    "Redaction",
    "Redactor",
    "SecretRedactor",
    "quoted",
    "redact_label",
    "redact_path",
    "redact_value",
    "shortened",
]
