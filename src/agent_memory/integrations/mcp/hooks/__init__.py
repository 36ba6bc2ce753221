"""Hooks of hosts, and the state of the turn that they write."""
