"""How a memory stays true: notes that go stale, contradict, are replaced and forgotten, and questions about them."""
