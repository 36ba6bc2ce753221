"""Measure matching of records on four labelled sets, and the time of a lookup."""
