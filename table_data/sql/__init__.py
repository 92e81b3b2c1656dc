"""SQL expressions of pylance: what is checked of them before its parser reads them.

tokens       their tokens
bounds       bounds of nesting and length
expressions  the one check that every SQL text passes
arithmetic   the integer arithmetic in them
"""
