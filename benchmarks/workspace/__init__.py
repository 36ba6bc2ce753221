"""Kills the processes of a workspace, loads it, and measures it."""
