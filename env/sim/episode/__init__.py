"""Episodes as files: recorded, read and played again."""
