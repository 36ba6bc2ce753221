"""Background work of knowledge: its stages, checkpoints and queues."""
