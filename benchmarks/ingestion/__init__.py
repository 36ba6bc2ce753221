"""What it costs to take in conversations: time of a turn, turns a second, bytes on the disk."""
