"""Checks of agents' files: doctor and health. Never loaded at import.

`__init__.pyi` lists the names; each is loaded at its first use: a session
checks without the modules of the doctor.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
