"""The `lance-namespace` command, also as `python -m namespace_server`."""

from namespace_server.cli import cli


def main() -> None:
    """Run the command line."""
    cli()


if __name__ == "__main__":
    main()
