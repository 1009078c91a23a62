"""The driver's part of a context: it owns all objects, calls, actors and hosts."""
