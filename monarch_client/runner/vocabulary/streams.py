"""The streams of a log. A line belongs to one rank and one stream."""

# `provision` holds SkyPilot's output, `portal` the messages of the runner and the portal.
STDOUT, STDERR, SETUP, PROVISION, PORTAL = "stdout", "stderr", "setup", "provision", "portal"
PROGRAM_STREAMS = (STDOUT, STDERR)
STREAMS = (STDOUT, STDERR, SETUP, PROVISION, PORTAL)
