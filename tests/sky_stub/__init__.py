"""A stand-in for SkyPilot's API server: SkyPilot's real client works against it, unmodified.

The protocol is SkyPilot's; the clouds behind it are folders and processes of this machine. Nodes
have a HOME and an address of their own, jobs are real processes which go on when the server dies,
and the faults that a test plans (see `plan.py`) happen. The server never imports sky, so it starts
in no time and needs little memory: what travels is JSON and pickles of plain data.
"""
