"""Secrets in stored records that the present rules of redaction recognise."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_memory.care.privacy.purge_survey import PurgeSurvey
from agent_memory.redaction import SecretRedactor

if TYPE_CHECKING:
    from agent_memory.files.layout import AgentFolder


class RecordWithSecrets(NamedTuple):
    """One record whose text has secrets.

    Attributes:
        id: ID of the record, live, forgotten or archived.
        kinds: Kinds of the secrets, in order of appearance.
        text: First of its texts with secrets; each secret is replaced by its kind.
    """

    id: str
    kinds: tuple[str, ...]
    text: str


def find_stored_secrets(folder: AgentFolder) -> list[RecordWithSecrets]:
    """Return records with secrets, earlier versions included. Blocking: reads each journal whole.

    Raises:
        StorageError: A journal cannot be read.
    """
    survey, redactor = PurgeSurvey(folder), SecretRedactor()
    records = []
    for record_id in survey.ids:
        redactions = [redactor.redact(text) for text in survey.list_texts(record_id)]
        with_secrets = [redaction for redaction in redactions if redaction.kinds]
        if with_secrets:
            kinds = dict.fromkeys(kind for redaction in with_secrets for kind in redaction.kinds)
            records.append(RecordWithSecrets(record_id, tuple(kinds), with_secrets[0].text))
    return records
