"""Monarch's client of a program that attaches to workers from outside of their cluster.

`profile` has its time-outs, `meshes` attaches, `loss` raises what Monarch waits for in vain.
"""
