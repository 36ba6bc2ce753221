"""Settings of modules and their shared memory; installation of missing parts.

Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.models.identifiers import DEFAULT_ROOT as DEFAULT_ROOT
    from agent_memory.settings.module_config import SettingsT as SettingsT
    from agent_memory.settings.module_config import build_settings as build_settings
    from agent_memory.settings.module_config import merge_shared as merge_shared
    from agent_memory.settings.module_config import parse_module_config as parse_module_config
    from agent_memory.settings.schema import DEFAULT_TOKEN_BUDGET as DEFAULT_TOKEN_BUDGET
    from agent_memory.settings.schema import ENGINE_PAYS as ENGINE_PAYS
    from agent_memory.settings.schema import KNOWLEDGE_TOOLS as KNOWLEDGE_TOOLS
    from agent_memory.settings.schema import LOCAL_MODEL as LOCAL_MODEL
    from agent_memory.settings.schema import OFFERED_TOOLS as OFFERED_TOOLS
    from agent_memory.settings.schema import OPENAI_DIMENSIONS as OPENAI_DIMENSIONS
    from agent_memory.settings.schema import PAYS_FROM as PAYS_FROM
    from agent_memory.settings.schema import PERSON_SECONDS as PERSON_SECONDS
    from agent_memory.settings.schema import TENANT as TENANT
    from agent_memory.settings.schema import TOOL_NAMES as TOOL_NAMES
    from agent_memory.settings.schema import CapturePattern as CapturePattern
    from agent_memory.settings.schema import CaptureSettings as CaptureSettings
    from agent_memory.settings.schema import EncryptionSettings as EncryptionSettings
    from agent_memory.settings.schema import HealthSettings as HealthSettings
    from agent_memory.settings.schema import ScratchpadSettings as ScratchpadSettings
    from agent_memory.settings.schema import ServiceSettings as ServiceSettings
    from agent_memory.settings.schema import Settings as Settings
    from agent_memory.settings.schema import ToolSettings as ToolSettings
    from agent_memory.settings.schema import did_you_mean as did_you_mean
    from agent_memory.settings.schema import tools_among as tools_among


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
