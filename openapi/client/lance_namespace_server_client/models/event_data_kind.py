from enum import StrEnum


class EventDataKind(StrEnum):
    ADOPTED = "adopted"
    COMMITTED = "committed"
    CURSORS = "cursors"
    HIDDEN = "hidden"
    HOUSEKEEPING = "housekeeping"
    UNMANAGED = "unmanaged"

    def __str__(self) -> str:
        return str(self.value)
