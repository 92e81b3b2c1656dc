# mypy: disable-error-code="type-arg"
from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Layer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNSPECIFIED: _ClassVar[Layer]
    ALL_VALID_ITEM: _ClassVar[Layer]
    NULLABLE_ITEM: _ClassVar[Layer]
    NULLABLE_LIST: _ClassVar[Layer]
UNSPECIFIED: Layer
ALL_VALID_ITEM: Layer
NULLABLE_ITEM: Layer
NULLABLE_LIST: Layer

class FileDescriptor(_message.Message):
    __slots__ = ("schema", "length")
    class Schema(_message.Message):
        __slots__ = ("fields",)
        FIELDS_FIELD_NUMBER: _ClassVar[int]
        fields: _containers.RepeatedScalarFieldContainer[bytes]
        def __init__(self, fields: _Optional[_Iterable[bytes]] = ...) -> None: ...
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    schema: FileDescriptor.Schema
    length: int
    def __init__(self, schema: _Optional[_Union[FileDescriptor.Schema, _Mapping]] = ..., length: _Optional[int] = ...) -> None: ...

class Encoding(_message.Message):
    __slots__ = ("direct",)
    class Direct(_message.Message):
        __slots__ = ("encoding",)
        ENCODING_FIELD_NUMBER: _ClassVar[int]
        encoding: _any_pb2.Any
        def __init__(self, encoding: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...
    DIRECT_FIELD_NUMBER: _ClassVar[int]
    direct: Encoding.Direct
    def __init__(self, direct: _Optional[_Union[Encoding.Direct, _Mapping]] = ...) -> None: ...

class ColumnMetadata(_message.Message):
    __slots__ = ("encoding", "pages")
    class Page(_message.Message):
        __slots__ = ("buffer_offsets", "buffer_sizes", "length", "encoding", "priority")
        BUFFER_OFFSETS_FIELD_NUMBER: _ClassVar[int]
        BUFFER_SIZES_FIELD_NUMBER: _ClassVar[int]
        LENGTH_FIELD_NUMBER: _ClassVar[int]
        ENCODING_FIELD_NUMBER: _ClassVar[int]
        PRIORITY_FIELD_NUMBER: _ClassVar[int]
        buffer_offsets: _containers.RepeatedScalarFieldContainer[int]
        buffer_sizes: _containers.RepeatedScalarFieldContainer[int]
        length: int
        encoding: Encoding
        priority: int
        def __init__(self, buffer_offsets: _Optional[_Iterable[int]] = ..., buffer_sizes: _Optional[_Iterable[int]] = ..., length: _Optional[int] = ..., encoding: _Optional[_Union[Encoding, _Mapping]] = ..., priority: _Optional[int] = ...) -> None: ...
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    encoding: Encoding
    pages: _containers.RepeatedCompositeFieldContainer[ColumnMetadata.Page]
    def __init__(self, encoding: _Optional[_Union[Encoding, _Mapping]] = ..., pages: _Optional[_Iterable[_Union[ColumnMetadata.Page, _Mapping]]] = ...) -> None: ...

class ColumnEncoding(_message.Message):
    __slots__ = ("values",)
    class Empty(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: ColumnEncoding.Empty
    def __init__(self, values: _Optional[_Union[ColumnEncoding.Empty, _Mapping]] = ...) -> None: ...

class Compression(_message.Message):
    __slots__ = ("flat", "variable")
    class Flat(_message.Message):
        __slots__ = ("bits_per_value",)
        BITS_PER_VALUE_FIELD_NUMBER: _ClassVar[int]
        bits_per_value: int
        def __init__(self, bits_per_value: _Optional[int] = ...) -> None: ...
    class Variable(_message.Message):
        __slots__ = ("offsets",)
        OFFSETS_FIELD_NUMBER: _ClassVar[int]
        offsets: Compression
        def __init__(self, offsets: _Optional[_Union[Compression, _Mapping]] = ...) -> None: ...
    FLAT_FIELD_NUMBER: _ClassVar[int]
    VARIABLE_FIELD_NUMBER: _ClassVar[int]
    flat: Compression.Flat
    variable: Compression.Variable
    def __init__(self, flat: _Optional[_Union[Compression.Flat, _Mapping]] = ..., variable: _Optional[_Union[Compression.Variable, _Mapping]] = ...) -> None: ...

class PageLayout(_message.Message):
    __slots__ = ("chunks", "constant")
    class Chunks(_message.Message):
        __slots__ = ("definition", "values", "layers", "buffers", "items", "large")
        DEFINITION_FIELD_NUMBER: _ClassVar[int]
        VALUES_FIELD_NUMBER: _ClassVar[int]
        LAYERS_FIELD_NUMBER: _ClassVar[int]
        BUFFERS_FIELD_NUMBER: _ClassVar[int]
        ITEMS_FIELD_NUMBER: _ClassVar[int]
        LARGE_FIELD_NUMBER: _ClassVar[int]
        definition: Compression
        values: Compression
        layers: _containers.RepeatedScalarFieldContainer[Layer]
        buffers: int
        items: int
        large: bool
        def __init__(self, definition: _Optional[_Union[Compression, _Mapping]] = ..., values: _Optional[_Union[Compression, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[Layer, str]]] = ..., buffers: _Optional[int] = ..., items: _Optional[int] = ..., large: _Optional[bool] = ...) -> None: ...
    class Constant(_message.Message):
        __slots__ = ("layers", "repetition", "definition", "repetition_levels", "definition_levels")
        LAYERS_FIELD_NUMBER: _ClassVar[int]
        REPETITION_FIELD_NUMBER: _ClassVar[int]
        DEFINITION_FIELD_NUMBER: _ClassVar[int]
        REPETITION_LEVELS_FIELD_NUMBER: _ClassVar[int]
        DEFINITION_LEVELS_FIELD_NUMBER: _ClassVar[int]
        layers: _containers.RepeatedScalarFieldContainer[Layer]
        repetition: Compression
        definition: Compression
        repetition_levels: int
        definition_levels: int
        def __init__(self, layers: _Optional[_Iterable[_Union[Layer, str]]] = ..., repetition: _Optional[_Union[Compression, _Mapping]] = ..., definition: _Optional[_Union[Compression, _Mapping]] = ..., repetition_levels: _Optional[int] = ..., definition_levels: _Optional[int] = ...) -> None: ...
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_FIELD_NUMBER: _ClassVar[int]
    chunks: PageLayout.Chunks
    constant: PageLayout.Constant
    def __init__(self, chunks: _Optional[_Union[PageLayout.Chunks, _Mapping]] = ..., constant: _Optional[_Union[PageLayout.Constant, _Mapping]] = ...) -> None: ...
