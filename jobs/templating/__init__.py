"""Templates of jobs: those of a project, those of the installation, and those that are built in."""
