"""Tasks, actors and objects: beside Ray."""
