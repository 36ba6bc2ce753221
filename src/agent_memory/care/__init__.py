"""Upkeep of an agent's folder as a whole: who the agents are, their names, copies and ends."""
