"""Earlier import path of `privacy.consent_modes`."""

from agent_memory.memory.consent_modes import MODES, NARROWER, Mode, Modes, read_modes, strictest

__all__ = ["MODES", "NARROWER", "Mode", "Modes", "read_modes", "strictest"]
