"""The processes of a host, which a driver or a host agent starts: executors and their zygote."""
