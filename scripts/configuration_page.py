"""docs/reference/configuration.md, made of the settings and the notes below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.tool_settings import IngestionSettings, KnowledgeToolSettings
from agent_memory.settings import (
    CaptureSettings,
    EncryptionSettings,
    HealthSettings,
    ScratchpadSettings,
    ServiceSettings,
    ToolSettings,
)
from agent_memory.workspace.toolset.session_toolset import WorkspaceToolSettings

if TYPE_CHECKING:
    from pydantic import BaseModel


def document() -> str:
    """Return docs/reference/configuration.md."""
    sections: list[tuple[str, str, type[BaseModel]]] = [
        ("Shared by the three modules", _SHARED_NOTE, ServiceSettings),
        ("health", _HEALTH_NOTE, HealthSettings),
        ("encryption", _ENCRYPTION_NOTE, EncryptionSettings),
        ("tool-memory-semantic", "", ToolSettings),
        ("tool-memory-knowledge", "", KnowledgeToolSettings),
        ("tool-memory-workspace", _WORKSPACE_NOTE, WorkspaceToolSettings),
        ("context-memory-scratchpad", "", ScratchpadSettings),
        ("hooks-memory-capture", _CAPTURE_NOTE, CaptureSettings),
        ("hooks-memory-ingestion", _INGESTION_NOTE, IngestionSettings),
    ]
    lines = ["# Configuration", "", *_INTRODUCTION.splitlines()]
    for title, note, kind in sections:
        lines += ["", f"## {title}", "", *([note, ""] if note else []), "| key | default | meaning |", "|---|---|---|"]
        for name, field in kind.model_fields.items():
            default = "" if field.default is None else _render_default(field.default)
            lines.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


_INTRODUCTION: Final = """\
Generated from the settings by `make docs`; tests mount each example.

All settings are optional. Settings for all your sessions go into `~/.amplifier/settings.yaml`:

```yaml
overrides:
  tool-memory-semantic:
    config:
      agent_id: bob
      enabled: true      # false: no memory, and only the tool memory_status
      mode: autonomous   # ask: captures wait in an inbox; manual: only what the user asks for is stored
  context-memory-scratchpad:
    config:
      token_budget: 1000
```

Any module except `tool-memory-workspace` takes `enabled`, `mode`, `categories`, and `projects` as a mapping. They hold
for all modules, and the strictest counts: [Control what is stored](../how-to/consent.md).

In your own bundle, settings are below `config:`. `source:` may be omitted if the bundle includes the memory bundle:

```yaml
tools:
  - module: tool-memory-semantic
    config:
      default_search_limit: 10
      auto_migrate: true
hooks:
  - module: hooks-memory-capture
    config:
      min_confidence: 0.9
```

A bundle may also name the agent and limit memory in its `session:` section. The host ignores it in `settings.yaml`;
`memory_status`, `agent-memory status` and `doctor` report that.

```yaml
session:
  capabilities:
    agent_identity: bob
    memory:
      enabled: true
      mode: autonomous
```

Embeddings by OpenAI instead of the local model; the key comes from `OPENAI_API_KEY`, and all texts go there:

```yaml
overrides:
  tool-memory-semantic:
    config:
      embedding_model: text-embedding-3-small
```

- An unknown key is a warning in the log and in `memory_status`.
- A wrong value, or two values that contradict each other, switch memory off; every tool says why.
- `enabled` that is neither true nor false, or a misspelled key, switches memory off. An unknown `mode` means `manual`.
- With `enabled: false` only `memory_status` is offered. `amplifier` may log "Partial tool failure"; nothing failed.
"""
_SHARED_NOTE: Final = "Give them to any one of the modules. Two different values for one key are an error."
_CAPTURE_NOTE: Final = (
    "An entry of `capture_patterns` is a regular expression, or a mapping with `pattern`, `category` and `confidence`."
)
_WORKSPACE_NOTE: Final = (
    "Only if `behaviors/memory-workspace.yaml` is included. `AGENT_MEMORY_WORKSPACE_URL` has the PostgreSQL database."
)
_HEALTH_NOTE: Final = (
    "Below `health:`, one of the shared keys: `health: {disk_warning_mb: 2000}`. The command takes "
    "`agents health --limit disk_warning_mb=2000`. [Checks](errors.md#health-checks)."
)
_ENCRYPTION_NOTE: Final = (
    "Below `encryption:`, one of the shared keys: `encryption: {key_file: ~/.config/agent-memory.key}`. "
    "[Encrypt an agent](../how-to/encrypt.md)."
)
_INGESTION_NOTE: Final = "Only if `behaviors/memory-ingestion.yaml` is included."


def _render_default(default: object) -> str:
    """Return a default as the page shows it."""
    if isinstance(default, HealthSettings | EncryptionSettings):
        return ""
    if isinstance(default, tuple):
        return ", ".join(f"`{item}`" for item in default) or "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
