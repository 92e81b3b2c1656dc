"""Wrappers around a store.

delegation    `WrappedStore`, the base class: passes every call to the inner store
counting      counts requests and round trips
metered       measures the kind, the outcome and the time of each call
"""
