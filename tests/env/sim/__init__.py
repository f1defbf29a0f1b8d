"""Tests of the simulator, and the models it is held to."""
