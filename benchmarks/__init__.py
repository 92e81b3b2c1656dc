"""What the server does per second, measured in the same run and on the same disk as pylance's own REST server."""
