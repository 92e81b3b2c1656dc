"""A social graph over some days: pipelines that change many tables at once, and what every catalog version holds.

    python -m social_graph [--edges 200000] [--days 10] [--seed 1] [--out build/social-graph]

generator  the graph of a seed, and the rows of every table at the end of every day
pipelines  what changes the tables: daily updates, a competing writer, a stream
history    rows of every table in every catalog version
checks     the tables compared with the generator
page       plots, and a page that shows them
"""
