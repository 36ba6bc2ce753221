"""Settings of modules and their shared memory; installation of missing parts.

`__init__.pyi` lists the names; each is loaded at its first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
