"""A real Slurm cluster on one machine, for SkyPilot and Monarch, that leaves nothing behind.

`python -m tests.cluster.rig -- COMMAND` brings it up, runs COMMAND inside and ends all of it.
"""
