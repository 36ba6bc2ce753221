"""Writes a drift world in other words: the same facts, contradictions and harmless pairs, none of its sentences."""
