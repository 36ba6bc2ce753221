"""Redaction of secrets before a text is stored, logged or emitted.

Pure: no file, no network, no verification.
"""

from agent_memory.redaction.findings import Redaction, Redactor
from agent_memory.redaction.redactor import SecretRedactor
from agent_memory.redaction.values import quoted, redact_label, redact_path, redact_value, shortened

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
