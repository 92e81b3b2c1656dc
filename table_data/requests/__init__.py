"""Parts of requests about rows."""
