"""The screens: one module for each group, and the table of all.

home     what is here, what happened last, and how the server is
sign_in  who the visitor is

A screen is a function of a `Visit`; its row here gives it a name, a path, and perhaps a place in the navigation.
"""

from __future__ import annotations

from typing import Final

from namespace_console.screens import home, sign_in
from namespace_console.visits import Screen

SCREENS: Final = (
    Screen("home", "", home.show, label="Home"),
    Screen("sign-in", "/sign-in", sign_in.show, sign_in.sign_in, open=True),
    Screen("sign-out", "/sign-out", sign_in.show, sign_in.sign_out, open=True),
)
