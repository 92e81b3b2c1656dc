from lance_core.proto import lance_table_pb2 as pb


def test_an_outline_has_the_fields_of_a_manifest_but_for_the_form_of_the_fragments() -> None:
    whole, outline = (
        {field.name: field for field in kind.DESCRIPTOR.fields} for kind in (pb.Manifest, pb.ManifestOutline)
    )
    assert whole.keys() == outline.keys()
    for name, field in whole.items():
        twin = outline[name]
        assert (twin.number, twin.is_repeated, twin.has_presence) == (
            field.number,
            field.is_repeated,
            field.has_presence,
        )
        if name == "fragments":
            assert twin.type == twin.TYPE_BYTES
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = [[part.type for part in side.message_type.fields] for side in (field, twin)]
            assert entries[0] == entries[1]
        else:
            assert (twin.type, twin.message_type) == (field.type, field.message_type)
    columns = {field.number for field in pb.FragmentColumns.DESCRIPTOR.fields}
    names = ("id", "deletion_file", "physical_rows", "overlays")
    assert columns == {pb.DataFragment.DESCRIPTOR.fields_by_name[name].number for name in names}
