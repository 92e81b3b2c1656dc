"""What a server reports of its work: metrics, traces, logs.

observation    the port: what the rest of the server reports to, without a library of metrics
metrics        counts and times, for Prometheus
tracing        spans of OpenTelemetry
logs           text and JSON logs
access_log     one line a request, written by a thread of its own
audit          one line a refused attempt, in files that are kept and read again

Below the command line, which wires them, all import `observation` alone.
"""
