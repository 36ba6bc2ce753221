"""Formats of other programs: chat exports, session logs, rules, vaults, memories."""
