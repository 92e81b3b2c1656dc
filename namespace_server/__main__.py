"""The `lance-namespace` command, also as `python -m namespace_server`."""

import gc


def main() -> None:
    """Run the command line.

    What is imported stays for good. The collector of cycles is spared the look at it, while it comes to be and later:
    that would take a fifth of the time to start.
    """
    gc.disable()
    from namespace_server.cli import cli

    gc.freeze()
    gc.enable()
    cli()


if __name__ == "__main__":
    main()
