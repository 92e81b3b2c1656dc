"""The Lance namespace catalog server: the catalog itself, and its REST face."""
