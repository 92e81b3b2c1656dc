"""A model of forwarding: its rules suffice, and none can be left out."""
