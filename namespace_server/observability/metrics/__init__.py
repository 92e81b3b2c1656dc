"""The metrics of one server, in the text format of Prometheus.

`measures` holds what is counted and timed as it happens, `state` what is read when the metrics are asked for. Each
server of a process has its own registry. Only this package imports `prometheus_client`.
"""
