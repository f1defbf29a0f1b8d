"""What plans are searched with; another solver is another file here."""
