"""Makes the records of what is declared."""
