"""docs/configuration.md, made of the settings and what stands here."""

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
from scripts.prices import INSTRUCTIONS, count_tokens, tool_prices

if TYPE_CHECKING:
    from pydantic import BaseModel


def document() -> str:
    """Return docs/configuration.md."""
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
            default = "" if field.default is None else _shown(field.default)
            lines.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join([*lines, *_prices()]) + "\n"


def _prices() -> list[str]:
    prices = tool_prices()
    rows = [f"| `{name}` | {price} |" for name, price in prices.items()]
    return [
        "",
        *_PRICES.splitlines(),
        "",
        "| part | tokens |",
        "|---|---|",
        *rows,
        f"| together | {sum(prices.values())} |",
        "",
        *_PRICES_END.format(instructions=count_tokens(INSTRUCTIONS.read_text(encoding="utf-8"))).splitlines(),
    ]


_INTRODUCTION: Final = """\
Generated from `agent_memory/settings/` and `scripts/configuration_page.py` by `make docs`;
tests keep it true and mount each example.

All settings are optional. For all your sessions they belong into `~/.amplifier/settings.yaml`:

```yaml
overrides:
  tool-memory-semantic:
    config:
      agent_id: bob
      enabled: true      # false: no memory, and no tool but memory_status
      mode: autonomous   # ask: captures wait in an inbox; manual: only what the user asks for is kept
  context-memory-scratchpad:
    config:
      token_budget: 1000
```

Any module except `tool-memory-workspace` takes `enabled`, `mode`, `categories`, and `projects` as a mapping. They
hold for all modules, and the strictest counts. More ways to limit memory are in [Consent](consent.md).

In your own bundle, settings are under `config:`. If the bundle includes the memory bundle, `source:` may be left out:

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

A bundle may also name the agent and limit memory in its `session:` section. The host reads this section from bundles
only. In `settings.yaml` it has no effect: `memory_status`, `agent-memory status` and `doctor` say so.

```yaml
session:
  capabilities:
    agent_identity: bob
    memory:
      enabled: true
      mode: autonomous
```

Vectors by OpenAI instead of the local model; its key comes from the environment variable `OPENAI_API_KEY`, and the
texts of all memories go there:

```yaml
overrides:
  tool-memory-semantic:
    config:
      embedding_model: text-embedding-3-small
```

An unknown key is a warning in the log and in `memory_status`. A wrong value, or two values that contradict each other,
switch memory off for the session, and every tool says why.

A limit that is not understood still limits memory. An `enabled` that is neither true nor false, or a misspelt key,
switches it off. An unknown `mode` means `manual`. A plain `enabled: false` also removes all tools except
`memory_status`; any other value, such as "no", leaves them to say what is off.
"""
_PRICES: Final = """\
## What the tools cost

Schemas are part of every request. Tokens (o200k_base) of each tool's name, description and schema as JSON, and of the
line about the memory-assistant in a tool that delegates:
"""
_PRICES_END: Final = """\
The [instructions](tools.md#instructions) in the system prompt cost {instructions} more.

`tools:` offers fewer, for example `tools: [memory_search, memory_store, memory_update, memory_forget]`.
The scratchpad comes on top (`token_budget`, at most 2,000 by default; one line while it is empty).

With `enabled: false` only `memory_status` is left: no other tool, no assistant and no scratchpad. `amplifier` may then
log "Partial tool failure", because there are fewer tools than modules. Nothing failed.
"""
_SHARED_NOTE: Final = (
    "Give them to any one of the modules. Two different values for one key are an error that names both modules."
)
_CAPTURE_NOTE: Final = (
    "An entry of `capture_patterns` is a regular expression, or a mapping with `pattern`, `category` and `confidence`."
)
_WORKSPACE_NOTE: Final = (
    "In no session unless `behaviors/memory-workspace.yaml` is included. The address of a PostgreSQL database is no "
    "setting: it stands in `AGENT_MEMORY_WORKSPACE_URL`."
)
_HEALTH_NOTE: Final = (
    "Below `health:`, one of the shared keys: `health: {disk_warning_mb: 2000}`. `agent-memory agents health` reads no "
    "configuration of sessions; there they are `--limit disk_warning_mb=2000`. See [lifecycle.md](lifecycle.md#health)."
)
_ENCRYPTION_NOTE: Final = (
    "Below `encryption:`, one of the shared keys: `encryption: {key_file: ~/.config/agent-memory.key}`. For memories "
    "that are encrypted, see [encryption.md](encryption.md)."
)
_INGESTION_NOTE: Final = "In no session unless `behaviors/memory-ingestion.yaml` is included."


def _shown(default: object) -> str:
    if isinstance(default, HealthSettings | EncryptionSettings):
        return ""
    if isinstance(default, tuple):
        return ", ".join(f"`{item}`" for item in default) or "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
