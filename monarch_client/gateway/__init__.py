"""A program on a laptop and the meshes of a job, joined by the portal."""
