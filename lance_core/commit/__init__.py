"""From a transaction to a published manifest: prepare, claim the slot, repeat; or stage, look, publish."""
