"""Independent validators of what the engine played."""
