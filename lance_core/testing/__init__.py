"""Stores that fail on purpose, for tests of this engine and of packages built on it.

faults       `FaultStore`: crashes, lost answers and delayed writes at chosen requests
power        `PowerStore`: loses everything that is not durable
limited      stores without exclusive writes
manifests    external manifest stores: in memory, and with faults
"""
