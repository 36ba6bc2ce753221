"""Measure the share of tasks whose decisions a briefing shows."""
