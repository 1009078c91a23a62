"""What happens when things break: real processes killed, stopped, cut off and filled up."""
