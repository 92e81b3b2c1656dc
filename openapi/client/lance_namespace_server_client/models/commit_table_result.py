from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.assert_table_version_response import AssertTableVersionResponse
    from ..models.batch_delete_table_versions_response import BatchDeleteTableVersionsResponse
    from ..models.catalog_pin_response import CatalogPinResponse
    from ..models.commit_transaction_response import CommitTransactionResponse
    from ..models.create_table_version_response import CreateTableVersionResponse
    from ..models.cursor_response import CursorResponse
    from ..models.declare_table_response import DeclareTableResponse
    from ..models.deregister_table_response import DeregisterTableResponse
    from ..models.drop_table_response import DropTableResponse
    from ..models.enable_grants_response import EnableGrantsResponse
    from ..models.grant_change import GrantChange
    from ..models.intent_response import IntentResponse
    from ..models.rename_table_response import RenameTableResponse
    from ..models.set_table_properties_response import SetTablePropertiesResponse
    from ..models.undrop_table_response import UndropTableResponse


T = TypeVar("T", bound="CommitTableResult")


@_attrs_define
class CommitTableResult:
    """Exactly one of its fields, the one of the operation.

    Attributes:
        declare_table (DeclareTableResponse | Unset):
        create_table_version (CreateTableVersionResponse | Unset):
        delete_table_versions (BatchDeleteTableVersionsResponse | Unset):
        deregister_table (DeregisterTableResponse | Unset):
        commit_transaction (CommitTransactionResponse | Unset):
        assert_table_version (AssertTableVersionResponse | Unset): Empty: it held.
        set_table_properties (SetTablePropertiesResponse | Unset):
        undrop_table (UndropTableResponse | Unset):
        drop_table (DropTableResponse | Unset):
        rename_table (RenameTableResponse | Unset):
        pin_catalog_version (CatalogPinResponse | Unset):
        unpin_catalog_version (CatalogPinResponse | Unset):
        advance_cursor (CursorResponse | Unset):
        delete_cursor (CursorResponse | Unset):
        register_intent (IntentResponse | Unset):
        end_intent (IntentResponse | Unset):
        enable_grants (EnableGrantsResponse | Unset):
        grant_privileges (GrantChange | Unset):
        revoke_privileges (GrantChange | Unset):
        grant_role (GrantChange | Unset):
        revoke_role (GrantChange | Unset):
    """

    declare_table: DeclareTableResponse | Unset = UNSET
    create_table_version: CreateTableVersionResponse | Unset = UNSET
    delete_table_versions: BatchDeleteTableVersionsResponse | Unset = UNSET
    deregister_table: DeregisterTableResponse | Unset = UNSET
    commit_transaction: CommitTransactionResponse | Unset = UNSET
    assert_table_version: AssertTableVersionResponse | Unset = UNSET
    set_table_properties: SetTablePropertiesResponse | Unset = UNSET
    undrop_table: UndropTableResponse | Unset = UNSET
    drop_table: DropTableResponse | Unset = UNSET
    rename_table: RenameTableResponse | Unset = UNSET
    pin_catalog_version: CatalogPinResponse | Unset = UNSET
    unpin_catalog_version: CatalogPinResponse | Unset = UNSET
    advance_cursor: CursorResponse | Unset = UNSET
    delete_cursor: CursorResponse | Unset = UNSET
    register_intent: IntentResponse | Unset = UNSET
    end_intent: IntentResponse | Unset = UNSET
    enable_grants: EnableGrantsResponse | Unset = UNSET
    grant_privileges: GrantChange | Unset = UNSET
    revoke_privileges: GrantChange | Unset = UNSET
    grant_role: GrantChange | Unset = UNSET
    revoke_role: GrantChange | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        declare_table: dict[str, Any] | Unset = UNSET
        if not isinstance(self.declare_table, Unset):
            declare_table = self.declare_table.to_dict()

        create_table_version: dict[str, Any] | Unset = UNSET
        if not isinstance(self.create_table_version, Unset):
            create_table_version = self.create_table_version.to_dict()

        delete_table_versions: dict[str, Any] | Unset = UNSET
        if not isinstance(self.delete_table_versions, Unset):
            delete_table_versions = self.delete_table_versions.to_dict()

        deregister_table: dict[str, Any] | Unset = UNSET
        if not isinstance(self.deregister_table, Unset):
            deregister_table = self.deregister_table.to_dict()

        commit_transaction: dict[str, Any] | Unset = UNSET
        if not isinstance(self.commit_transaction, Unset):
            commit_transaction = self.commit_transaction.to_dict()

        assert_table_version: dict[str, Any] | Unset = UNSET
        if not isinstance(self.assert_table_version, Unset):
            assert_table_version = self.assert_table_version.to_dict()

        set_table_properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.set_table_properties, Unset):
            set_table_properties = self.set_table_properties.to_dict()

        undrop_table: dict[str, Any] | Unset = UNSET
        if not isinstance(self.undrop_table, Unset):
            undrop_table = self.undrop_table.to_dict()

        drop_table: dict[str, Any] | Unset = UNSET
        if not isinstance(self.drop_table, Unset):
            drop_table = self.drop_table.to_dict()

        rename_table: dict[str, Any] | Unset = UNSET
        if not isinstance(self.rename_table, Unset):
            rename_table = self.rename_table.to_dict()

        pin_catalog_version: dict[str, Any] | Unset = UNSET
        if not isinstance(self.pin_catalog_version, Unset):
            pin_catalog_version = self.pin_catalog_version.to_dict()

        unpin_catalog_version: dict[str, Any] | Unset = UNSET
        if not isinstance(self.unpin_catalog_version, Unset):
            unpin_catalog_version = self.unpin_catalog_version.to_dict()

        advance_cursor: dict[str, Any] | Unset = UNSET
        if not isinstance(self.advance_cursor, Unset):
            advance_cursor = self.advance_cursor.to_dict()

        delete_cursor: dict[str, Any] | Unset = UNSET
        if not isinstance(self.delete_cursor, Unset):
            delete_cursor = self.delete_cursor.to_dict()

        register_intent: dict[str, Any] | Unset = UNSET
        if not isinstance(self.register_intent, Unset):
            register_intent = self.register_intent.to_dict()

        end_intent: dict[str, Any] | Unset = UNSET
        if not isinstance(self.end_intent, Unset):
            end_intent = self.end_intent.to_dict()

        enable_grants: dict[str, Any] | Unset = UNSET
        if not isinstance(self.enable_grants, Unset):
            enable_grants = self.enable_grants.to_dict()

        grant_privileges: dict[str, Any] | Unset = UNSET
        if not isinstance(self.grant_privileges, Unset):
            grant_privileges = self.grant_privileges.to_dict()

        revoke_privileges: dict[str, Any] | Unset = UNSET
        if not isinstance(self.revoke_privileges, Unset):
            revoke_privileges = self.revoke_privileges.to_dict()

        grant_role: dict[str, Any] | Unset = UNSET
        if not isinstance(self.grant_role, Unset):
            grant_role = self.grant_role.to_dict()

        revoke_role: dict[str, Any] | Unset = UNSET
        if not isinstance(self.revoke_role, Unset):
            revoke_role = self.revoke_role.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if declare_table is not UNSET:
            field_dict["declare_table"] = declare_table
        if create_table_version is not UNSET:
            field_dict["create_table_version"] = create_table_version
        if delete_table_versions is not UNSET:
            field_dict["delete_table_versions"] = delete_table_versions
        if deregister_table is not UNSET:
            field_dict["deregister_table"] = deregister_table
        if commit_transaction is not UNSET:
            field_dict["commit_transaction"] = commit_transaction
        if assert_table_version is not UNSET:
            field_dict["assert_table_version"] = assert_table_version
        if set_table_properties is not UNSET:
            field_dict["set_table_properties"] = set_table_properties
        if undrop_table is not UNSET:
            field_dict["undrop_table"] = undrop_table
        if drop_table is not UNSET:
            field_dict["drop_table"] = drop_table
        if rename_table is not UNSET:
            field_dict["rename_table"] = rename_table
        if pin_catalog_version is not UNSET:
            field_dict["pin_catalog_version"] = pin_catalog_version
        if unpin_catalog_version is not UNSET:
            field_dict["unpin_catalog_version"] = unpin_catalog_version
        if advance_cursor is not UNSET:
            field_dict["advance_cursor"] = advance_cursor
        if delete_cursor is not UNSET:
            field_dict["delete_cursor"] = delete_cursor
        if register_intent is not UNSET:
            field_dict["register_intent"] = register_intent
        if end_intent is not UNSET:
            field_dict["end_intent"] = end_intent
        if enable_grants is not UNSET:
            field_dict["enable_grants"] = enable_grants
        if grant_privileges is not UNSET:
            field_dict["grant_privileges"] = grant_privileges
        if revoke_privileges is not UNSET:
            field_dict["revoke_privileges"] = revoke_privileges
        if grant_role is not UNSET:
            field_dict["grant_role"] = grant_role
        if revoke_role is not UNSET:
            field_dict["revoke_role"] = revoke_role

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.assert_table_version_response import AssertTableVersionResponse
        from ..models.batch_delete_table_versions_response import BatchDeleteTableVersionsResponse
        from ..models.catalog_pin_response import CatalogPinResponse
        from ..models.commit_transaction_response import CommitTransactionResponse
        from ..models.create_table_version_response import CreateTableVersionResponse
        from ..models.cursor_response import CursorResponse
        from ..models.declare_table_response import DeclareTableResponse
        from ..models.deregister_table_response import DeregisterTableResponse
        from ..models.drop_table_response import DropTableResponse
        from ..models.enable_grants_response import EnableGrantsResponse
        from ..models.grant_change import GrantChange
        from ..models.intent_response import IntentResponse
        from ..models.rename_table_response import RenameTableResponse
        from ..models.set_table_properties_response import SetTablePropertiesResponse
        from ..models.undrop_table_response import UndropTableResponse

        d = dict(src_dict)
        _declare_table = d.pop("declare_table", UNSET)
        declare_table: DeclareTableResponse | Unset
        if isinstance(_declare_table, Unset):
            declare_table = UNSET
        else:
            declare_table = DeclareTableResponse.from_dict(_declare_table)

        _create_table_version = d.pop("create_table_version", UNSET)
        create_table_version: CreateTableVersionResponse | Unset
        if isinstance(_create_table_version, Unset):
            create_table_version = UNSET
        else:
            create_table_version = CreateTableVersionResponse.from_dict(_create_table_version)

        _delete_table_versions = d.pop("delete_table_versions", UNSET)
        delete_table_versions: BatchDeleteTableVersionsResponse | Unset
        if isinstance(_delete_table_versions, Unset):
            delete_table_versions = UNSET
        else:
            delete_table_versions = BatchDeleteTableVersionsResponse.from_dict(_delete_table_versions)

        _deregister_table = d.pop("deregister_table", UNSET)
        deregister_table: DeregisterTableResponse | Unset
        if isinstance(_deregister_table, Unset):
            deregister_table = UNSET
        else:
            deregister_table = DeregisterTableResponse.from_dict(_deregister_table)

        _commit_transaction = d.pop("commit_transaction", UNSET)
        commit_transaction: CommitTransactionResponse | Unset
        if isinstance(_commit_transaction, Unset):
            commit_transaction = UNSET
        else:
            commit_transaction = CommitTransactionResponse.from_dict(_commit_transaction)

        _assert_table_version = d.pop("assert_table_version", UNSET)
        assert_table_version: AssertTableVersionResponse | Unset
        if isinstance(_assert_table_version, Unset):
            assert_table_version = UNSET
        else:
            assert_table_version = AssertTableVersionResponse.from_dict(_assert_table_version)

        _set_table_properties = d.pop("set_table_properties", UNSET)
        set_table_properties: SetTablePropertiesResponse | Unset
        if isinstance(_set_table_properties, Unset):
            set_table_properties = UNSET
        else:
            set_table_properties = SetTablePropertiesResponse.from_dict(_set_table_properties)

        _undrop_table = d.pop("undrop_table", UNSET)
        undrop_table: UndropTableResponse | Unset
        if isinstance(_undrop_table, Unset):
            undrop_table = UNSET
        else:
            undrop_table = UndropTableResponse.from_dict(_undrop_table)

        _drop_table = d.pop("drop_table", UNSET)
        drop_table: DropTableResponse | Unset
        if isinstance(_drop_table, Unset):
            drop_table = UNSET
        else:
            drop_table = DropTableResponse.from_dict(_drop_table)

        _rename_table = d.pop("rename_table", UNSET)
        rename_table: RenameTableResponse | Unset
        if isinstance(_rename_table, Unset):
            rename_table = UNSET
        else:
            rename_table = RenameTableResponse.from_dict(_rename_table)

        _pin_catalog_version = d.pop("pin_catalog_version", UNSET)
        pin_catalog_version: CatalogPinResponse | Unset
        if isinstance(_pin_catalog_version, Unset):
            pin_catalog_version = UNSET
        else:
            pin_catalog_version = CatalogPinResponse.from_dict(_pin_catalog_version)

        _unpin_catalog_version = d.pop("unpin_catalog_version", UNSET)
        unpin_catalog_version: CatalogPinResponse | Unset
        if isinstance(_unpin_catalog_version, Unset):
            unpin_catalog_version = UNSET
        else:
            unpin_catalog_version = CatalogPinResponse.from_dict(_unpin_catalog_version)

        _advance_cursor = d.pop("advance_cursor", UNSET)
        advance_cursor: CursorResponse | Unset
        if isinstance(_advance_cursor, Unset):
            advance_cursor = UNSET
        else:
            advance_cursor = CursorResponse.from_dict(_advance_cursor)

        _delete_cursor = d.pop("delete_cursor", UNSET)
        delete_cursor: CursorResponse | Unset
        if isinstance(_delete_cursor, Unset):
            delete_cursor = UNSET
        else:
            delete_cursor = CursorResponse.from_dict(_delete_cursor)

        _register_intent = d.pop("register_intent", UNSET)
        register_intent: IntentResponse | Unset
        if isinstance(_register_intent, Unset):
            register_intent = UNSET
        else:
            register_intent = IntentResponse.from_dict(_register_intent)

        _end_intent = d.pop("end_intent", UNSET)
        end_intent: IntentResponse | Unset
        if isinstance(_end_intent, Unset):
            end_intent = UNSET
        else:
            end_intent = IntentResponse.from_dict(_end_intent)

        _enable_grants = d.pop("enable_grants", UNSET)
        enable_grants: EnableGrantsResponse | Unset
        if isinstance(_enable_grants, Unset):
            enable_grants = UNSET
        else:
            enable_grants = EnableGrantsResponse.from_dict(_enable_grants)

        _grant_privileges = d.pop("grant_privileges", UNSET)
        grant_privileges: GrantChange | Unset
        if isinstance(_grant_privileges, Unset):
            grant_privileges = UNSET
        else:
            grant_privileges = GrantChange.from_dict(_grant_privileges)

        _revoke_privileges = d.pop("revoke_privileges", UNSET)
        revoke_privileges: GrantChange | Unset
        if isinstance(_revoke_privileges, Unset):
            revoke_privileges = UNSET
        else:
            revoke_privileges = GrantChange.from_dict(_revoke_privileges)

        _grant_role = d.pop("grant_role", UNSET)
        grant_role: GrantChange | Unset
        if isinstance(_grant_role, Unset):
            grant_role = UNSET
        else:
            grant_role = GrantChange.from_dict(_grant_role)

        _revoke_role = d.pop("revoke_role", UNSET)
        revoke_role: GrantChange | Unset
        if isinstance(_revoke_role, Unset):
            revoke_role = UNSET
        else:
            revoke_role = GrantChange.from_dict(_revoke_role)

        commit_table_result = cls(
            declare_table=declare_table,
            create_table_version=create_table_version,
            delete_table_versions=delete_table_versions,
            deregister_table=deregister_table,
            commit_transaction=commit_transaction,
            assert_table_version=assert_table_version,
            set_table_properties=set_table_properties,
            undrop_table=undrop_table,
            drop_table=drop_table,
            rename_table=rename_table,
            pin_catalog_version=pin_catalog_version,
            unpin_catalog_version=unpin_catalog_version,
            advance_cursor=advance_cursor,
            delete_cursor=delete_cursor,
            register_intent=register_intent,
            end_intent=end_intent,
            enable_grants=enable_grants,
            grant_privileges=grant_privileges,
            revoke_privileges=revoke_privileges,
            grant_role=grant_role,
            revoke_role=revoke_role,
        )

        commit_table_result.additional_properties = d
        return commit_table_result

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
