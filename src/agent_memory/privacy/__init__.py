"""What a person may ask of a memory about themselves: that something is gone for good."""

from agent_memory.privacy.purging import Plan, Purging, Receipt
from agent_memory.privacy.searching import Found

__all__ = ["Found", "Plan", "Purging", "Receipt"]
