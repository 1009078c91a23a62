"""The crash matrix of jobs on SkyPilot's machines: real client, real runners, a stand-in server."""
