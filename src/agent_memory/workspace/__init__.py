"""Workspaces: tables that agents share, with declared steps and snapshots.

`__init__.pyi` lists the names; each is loaded at its first use: SQLAlchemy takes a quarter of a second.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
