"""Long-term memory for agents: plain files, offline search, no telemetry.

    from agent_memory import FileStorage, Memory

    storage = FileStorage("bob")
    await storage.store(Memory(agent_id="bob", content="Use PostgreSQL for the ledger", category="decision"))
    results = await storage.search("which database did we pick")

The layers, from the top: `integrations` (Amplifier), `memory` (the one write path), `store`, `index`, `journal` and
`embeddings`, `models`. Importing this opens no file, starts no thread and loads no model. `__init__.pyi` lists
the names; each is loaded at its first use, so that the engine's processes start without pydantic.
"""

from agent_memory.earlier_paths import install as _install
from agent_memory.late import offer as _offer

__version__ = "0.1.0"

_install()
__getattr__, __dir__ = _offer(__name__)
