"""The embedded vector engine behind a memory in files: index, build, migration and rollback."""
