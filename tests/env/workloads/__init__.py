"""Tests of where workflows and arrivals come from."""
