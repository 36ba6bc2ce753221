from agent_memory.redaction.findings import Redaction as Redaction
from agent_memory.redaction.findings import Redactor as Redactor
from agent_memory.redaction.redactor import SecretRedactor as SecretRedactor
from agent_memory.redaction.values import quoted as quoted
from agent_memory.redaction.values import redact_label as redact_label
from agent_memory.redaction.values import redact_path as redact_path
from agent_memory.redaction.values import redact_value as redact_value
from agent_memory.redaction.values import shortened as shortened
