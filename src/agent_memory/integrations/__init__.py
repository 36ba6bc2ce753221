"""Hosts that memory works in, one package for each."""
