"""Programs that show how the parts are used together."""
