"""Measure how a memory handles stale, contradicting, replaced and forgotten notes."""
