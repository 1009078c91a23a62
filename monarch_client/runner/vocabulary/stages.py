"""The stages that a runner reports, in order, and the two reports of each.

The stage before them, `launch`, belongs to the portal.
"""

SETUP, WORKERS, RUN, TEARDOWN = "setup", "workers", "run", "teardown"
STAGES = (SETUP, WORKERS, RUN, TEARDOWN)

BEGIN, END = "begin", "end"
PHASES = (BEGIN, END)
