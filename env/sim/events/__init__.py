"""The event loop and what happens at each event."""
