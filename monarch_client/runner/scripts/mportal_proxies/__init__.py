"""The driver behind mesh proxies: it makes Monarch calls for a client that has no torchmonarch.

`python -m mportal_proxies` runs it on the cluster, as the job's user, with the job's interpreter:
one process for each session. The client uses the same codec, shapes and channel.
"""
