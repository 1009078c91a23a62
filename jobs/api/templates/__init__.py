"""Templates over REST."""
