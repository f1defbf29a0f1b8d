"""Tests of the benchmarks: that they run and say what they promise. Speed is never asserted."""
