"""Measurements of the portal beside a peer, taken in one run on one machine."""
