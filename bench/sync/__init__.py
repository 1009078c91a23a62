"""Code sync: from a changed file on a laptop to all nodes, and the simulation of many nodes."""
