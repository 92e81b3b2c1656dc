"""Object storage services: one bucket of one service, one coroutine for one request."""
