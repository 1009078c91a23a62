"""Fault tests: real processes killed, stopped, cut off and filled up."""
