"""How a command runs: settings, the command line, signals, sessions of Ray."""
