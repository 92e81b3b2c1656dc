"""Messages generated from `protos/`. Regenerate them with `make generate`; never edit them."""
