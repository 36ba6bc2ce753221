"""What a talk or a document states: claims with the place of their words. Pure, no model, no I/O."""
