"""Names of the ways in which frames leave the head node."""

# `auto`: the runner takes push if it reaches the portal, else pull. `none`: there is no portal.
PUSH, PULL, AUTO, NONE = "push", "pull", "auto", "none"
CARRIERS = (PUSH, PULL, AUTO, NONE)
