"""Upkeep of an agent's folder: archive, backups, purge, encryption, checks, repairs."""
