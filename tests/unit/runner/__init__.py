"""The runner's parts, each by itself."""
