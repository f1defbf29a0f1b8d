"""Memory rules: how many MB a function is given."""
