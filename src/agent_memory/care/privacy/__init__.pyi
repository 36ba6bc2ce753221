from agent_memory.care.privacy.file_encryption import BEYOND_ENCRYPTION as BEYOND_ENCRYPTION
from agent_memory.care.privacy.file_encryption import EncryptionResult as EncryptionResult
from agent_memory.care.privacy.file_encryption import change_key as change_key
from agent_memory.care.privacy.file_encryption import decrypt as decrypt
from agent_memory.care.privacy.file_encryption import encrypt as encrypt
from agent_memory.care.privacy.purge import PurgePlan as PurgePlan
from agent_memory.care.privacy.purge import PurgeReceipt as PurgeReceipt
from agent_memory.care.privacy.purge import Purging as Purging
from agent_memory.care.privacy.purge_survey import RecordWithSecrets as RecordWithSecrets
from agent_memory.care.privacy.purge_survey import find_stored_secrets as find_stored_secrets
from agent_memory.care.privacy.text_search import FileWithWords as FileWithWords
from agent_memory.memory.inbox import Inbox as Inbox
from agent_memory.memory.inbox_access import opened_inbox as opened_inbox
from agent_memory.memory.service import MemoryService as MemoryService

async def go_on_with_purges(service: MemoryService) -> MemoryService: ...
