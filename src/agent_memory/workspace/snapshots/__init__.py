"""Snapshots of a workspace, and ways back."""
