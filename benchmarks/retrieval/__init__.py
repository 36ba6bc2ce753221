"""How well the product finds what answers a question, measured through its own `store` and `search`."""
