"""Every setting, its default and its check. Reads no file and no environment: the host hands the values in.

Three modules are configured apart but share one memory. What concerns the store itself is in `ServiceSettings` and may
be given to any of them; `merge_shared` refuses two different explicit values.
"""

from agent_memory.settings.base import Fraction, Positive, Rate, Settings, did_you_mean
from agent_memory.settings.encryption import EncryptionSettings
from agent_memory.settings.health import HealthSettings
from agent_memory.settings.modules import (
    DEFAULT_TOKEN_BUDGET,
    KNOWLEDGE_TOOLS,
    OFFERED_TOOLS,
    TENANT,
    TOOL_NAMES,
    CapturePattern,
    CaptureSettings,
    ScratchpadSettings,
    ToolSettings,
    tools_among,
)
from agent_memory.settings.parsing import WITHOUT_EFFECT, SettingsT, build_settings, merge_shared, parse_module_config
from agent_memory.settings.service import (
    DEFAULT_ROOT,
    EMBEDDERS,
    ENGINE_PAYS,
    LOCAL_DIMENSION,
    LOCAL_MODEL,
    OPENAI_DIMENSIONS,
    PAYS_FROM,
    PERSON_SECONDS,
    ServiceSettings,
)

__all__ = [
    "DEFAULT_ROOT",
    "DEFAULT_TOKEN_BUDGET",
    "EMBEDDERS",
    "ENGINE_PAYS",
    "KNOWLEDGE_TOOLS",
    "LOCAL_DIMENSION",
    "LOCAL_MODEL",
    "OFFERED_TOOLS",
    "OPENAI_DIMENSIONS",
    "PAYS_FROM",
    "PERSON_SECONDS",
    "TENANT",
    "TOOL_NAMES",
    "WITHOUT_EFFECT",
    "CapturePattern",
    "CaptureSettings",
    "EncryptionSettings",
    "Fraction",
    "HealthSettings",
    "Positive",
    "Rate",
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
