"""From an HTTP request to the request of an operation: its body, its headers, its path."""
