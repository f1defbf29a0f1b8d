"""What would happen: when each container ends, and what a placement changes."""
