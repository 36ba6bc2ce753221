"""Memory for hosts of the Model Context Protocol; needs the extra `mcp`."""
