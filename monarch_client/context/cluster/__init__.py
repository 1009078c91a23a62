"""Whole jobs of a program: on this machine, or through a portal."""
