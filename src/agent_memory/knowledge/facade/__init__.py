"""Knowledge by the names of its contract: `MemoryManager`, its three layers, retrieval, events and what is printed."""
