"""Kills processes in each stage of sealing, merging, compaction and group commit, and looks what is left."""
