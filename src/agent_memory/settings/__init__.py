"""Settings of modules and their shared memory; installation of missing parts.

Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.models.identifiers import DEFAULT_ROOT
    from agent_memory.settings.module_config import (
        SettingsT,
        build_settings,
        merge_shared,
        parse_module_config,
    )
    from agent_memory.settings.schema import (
        DEFAULT_TOKEN_BUDGET,
        ENGINE_PAYS,
        KNOWLEDGE_TOOLS,
        LOCAL_MODEL,
        OFFERED_TOOLS,
        OPENAI_DIMENSIONS,
        PAYS_FROM,
        PERSON_SECONDS,
        TENANT,
        TOOL_NAMES,
        CapturePattern,
        CaptureSettings,
        EncryptionSettings,
        HealthSettings,
        ScratchpadSettings,
        ServiceSettings,
        Settings,
        ToolSettings,
        did_you_mean,
        tools_among,
    )

__all__ = [
    "DEFAULT_ROOT",
    "DEFAULT_TOKEN_BUDGET",
    "ENGINE_PAYS",
    "KNOWLEDGE_TOOLS",
    "LOCAL_MODEL",
    "OFFERED_TOOLS",
    "OPENAI_DIMENSIONS",
    "PAYS_FROM",
    "PERSON_SECONDS",
    "TENANT",
    "TOOL_NAMES",
    "CapturePattern",
    "CaptureSettings",
    "EncryptionSettings",
    "HealthSettings",
    "ScratchpadSettings",
    "ServiceSettings",
    "Settings",
    "SettingsT",
    "ToolSettings",
    "build_settings",
    "did_you_mean",
    "merge_shared",
    "parse_module_config",
    "tools_among",
]

if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
