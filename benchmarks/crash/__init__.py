"""Kills processes in the middle of everything they write, and looks whether anything acknowledged is lost."""
