"""Deliveries of events to a webhook: a process that follows a cursor.

delivery      each event signed, sent, and sent again until it is taken, or is a dead letter
receivers     connections to the address of a receiver, checked when they are made
signatures    the secrets of a webhook, and the headers of a message
"""
