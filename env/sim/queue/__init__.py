"""The central queue: which of the functions that wait is scheduled next."""
