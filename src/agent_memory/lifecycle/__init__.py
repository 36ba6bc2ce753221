"""Earlier path of importance, archive, backups and briefings, now in `care`.

Each name loads what it needs when it is first asked for.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
