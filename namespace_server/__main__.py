"""`python -m namespace_server` is the `lance-namespace` command."""

from namespace_server.cli import main

if __name__ == "__main__":
    main()
