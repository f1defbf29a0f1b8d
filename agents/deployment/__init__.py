"""Deployment plans: which region each function of a workflow runs in, hour by hour."""
