# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StagedManifests(_message.Message):
    __slots__ = ("parts",)
    class Part(_message.Message):
        __slots__ = ("path", "manifest")
        PATH_FIELD_NUMBER: _ClassVar[int]
        MANIFEST_FIELD_NUMBER: _ClassVar[int]
        path: str
        manifest: bytes
        def __init__(self, path: _Optional[str] = ..., manifest: _Optional[bytes] = ...) -> None: ...
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[StagedManifests.Part]
    def __init__(self, parts: _Optional[_Iterable[_Union[StagedManifests.Part, _Mapping]]] = ...) -> None: ...
