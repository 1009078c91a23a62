"""Measurements of programs outside of a job that drive its meshes."""
