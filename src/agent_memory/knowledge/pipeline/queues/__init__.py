"""What wakes the background work of ingestion, in this process or between processes, and the work itself."""
