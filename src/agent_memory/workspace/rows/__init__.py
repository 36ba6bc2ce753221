"""Rows of a workspace: values, reads, writes, leases and proposals."""
