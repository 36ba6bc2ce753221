"""What comes in from outside: files and talks are read, redacted and stored as they are; and taken back."""
