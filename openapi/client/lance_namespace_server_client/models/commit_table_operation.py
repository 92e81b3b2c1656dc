from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.advance_cursor_request import AdvanceCursorRequest
    from ..models.assert_table_version_request import AssertTableVersionRequest
    from ..models.batch_delete_table_versions_request import BatchDeleteTableVersionsRequest
    from ..models.commit_transaction_request import CommitTransactionRequest
    from ..models.create_table_version_request import CreateTableVersionRequest
    from ..models.declare_table_request import DeclareTableRequest
    from ..models.delete_cursor_request import DeleteCursorRequest
    from ..models.deregister_table_request import DeregisterTableRequest
    from ..models.drop_table_request import DropTableRequest
    from ..models.enable_grants_request import EnableGrantsRequest
    from ..models.end_intent_request import EndIntentRequest
    from ..models.grant_privileges_request import GrantPrivilegesRequest
    from ..models.grant_role_request import GrantRoleRequest
    from ..models.pin_catalog_version_request import PinCatalogVersionRequest
    from ..models.register_intent_request import RegisterIntentRequest
    from ..models.rename_table_request import RenameTableRequest
    from ..models.revoke_privileges_request import RevokePrivilegesRequest
    from ..models.revoke_role_request import RevokeRoleRequest
    from ..models.set_table_properties_request import SetTablePropertiesRequest
    from ..models.undrop_table_request import UndropTableRequest
    from ..models.unpin_catalog_version_request import UnpinCatalogVersionRequest


T = TypeVar("T", bound="CommitTableOperation")


@_attrs_define
class CommitTableOperation:
    """Exactly one of its fields.

    Attributes:
        declare_table (DeclareTableRequest | Unset):
        create_table_version (CreateTableVersionRequest | Unset):
        delete_table_versions (BatchDeleteTableVersionsRequest | Unset):
        deregister_table (DeregisterTableRequest | Unset):
        commit_transaction (CommitTransactionRequest | Unset): Commit a Lance transaction; the server rebases it onto
            the newest version of the table, or rejects the batch. Not part of the
            published namespace API.
        assert_table_version (AssertTableVersionRequest | Unset): Reject the batch unless `version` is the newest of the
            table when the batch is committed. Not part of the published
            namespace API.
        set_table_properties (SetTablePropertiesRequest | Unset): Change the properties that the catalog stores with a
            table. `properties` replaces all of them; none are left if `updates` and
            `removals` are missing too. `updates` sets some and `removals` removes some, and the others stay; not together
            with
            `properties`. Not part of the published namespace API.
        undrop_table (UndropTableRequest | Unset): Not part of the published namespace API.
        drop_table (DropTableRequest | Unset):
        rename_table (RenameTableRequest | Unset):
        pin_catalog_version (PinCatalogVersionRequest | Unset): Not part of the published namespace API.
        unpin_catalog_version (UnpinCatalogVersionRequest | Unset): Not part of the published namespace API.
        advance_cursor (AdvanceCursorRequest | Unset): Not part of the published namespace API.
        delete_cursor (DeleteCursorRequest | Unset): Not part of the published namespace API.
        register_intent (RegisterIntentRequest | Unset): Not part of the published namespace API.
        end_intent (EndIntentRequest | Unset): Not part of the published namespace API.
        enable_grants (EnableGrantsRequest | Unset): Not part of the published namespace API.
        grant_privileges (GrantPrivilegesRequest | Unset): It needs `grant` on the object, and each privilege that is
            given. Not part of the published namespace API.
        revoke_privileges (RevokePrivilegesRequest | Unset): It needs `grant` on the object, and each privilege that is
            taken. Not part of the published namespace API.
        grant_role (GrantRoleRequest | Unset): Give a role to a principal or to another role. It needs `own` on the
            catalog. Not part of the published namespace API.
        revoke_role (RevokeRoleRequest | Unset): Take a role from a principal or another role. It needs `own` on the
            catalog. Not part of the published namespace API.
    """

    declare_table: DeclareTableRequest | Unset = UNSET
    create_table_version: CreateTableVersionRequest | Unset = UNSET
    delete_table_versions: BatchDeleteTableVersionsRequest | Unset = UNSET
    deregister_table: DeregisterTableRequest | Unset = UNSET
    commit_transaction: CommitTransactionRequest | Unset = UNSET
    assert_table_version: AssertTableVersionRequest | Unset = UNSET
    set_table_properties: SetTablePropertiesRequest | Unset = UNSET
    undrop_table: UndropTableRequest | Unset = UNSET
    drop_table: DropTableRequest | Unset = UNSET
    rename_table: RenameTableRequest | Unset = UNSET
    pin_catalog_version: PinCatalogVersionRequest | Unset = UNSET
    unpin_catalog_version: UnpinCatalogVersionRequest | Unset = UNSET
    advance_cursor: AdvanceCursorRequest | Unset = UNSET
    delete_cursor: DeleteCursorRequest | Unset = UNSET
    register_intent: RegisterIntentRequest | Unset = UNSET
    end_intent: EndIntentRequest | Unset = UNSET
    enable_grants: EnableGrantsRequest | Unset = UNSET
    grant_privileges: GrantPrivilegesRequest | Unset = UNSET
    revoke_privileges: RevokePrivilegesRequest | Unset = UNSET
    grant_role: GrantRoleRequest | Unset = UNSET
    revoke_role: RevokeRoleRequest | Unset = UNSET
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
        from ..models.advance_cursor_request import AdvanceCursorRequest
        from ..models.assert_table_version_request import AssertTableVersionRequest
        from ..models.batch_delete_table_versions_request import BatchDeleteTableVersionsRequest
        from ..models.commit_transaction_request import CommitTransactionRequest
        from ..models.create_table_version_request import CreateTableVersionRequest
        from ..models.declare_table_request import DeclareTableRequest
        from ..models.delete_cursor_request import DeleteCursorRequest
        from ..models.deregister_table_request import DeregisterTableRequest
        from ..models.drop_table_request import DropTableRequest
        from ..models.enable_grants_request import EnableGrantsRequest
        from ..models.end_intent_request import EndIntentRequest
        from ..models.grant_privileges_request import GrantPrivilegesRequest
        from ..models.grant_role_request import GrantRoleRequest
        from ..models.pin_catalog_version_request import PinCatalogVersionRequest
        from ..models.register_intent_request import RegisterIntentRequest
        from ..models.rename_table_request import RenameTableRequest
        from ..models.revoke_privileges_request import RevokePrivilegesRequest
        from ..models.revoke_role_request import RevokeRoleRequest
        from ..models.set_table_properties_request import SetTablePropertiesRequest
        from ..models.undrop_table_request import UndropTableRequest
        from ..models.unpin_catalog_version_request import UnpinCatalogVersionRequest

        d = dict(src_dict)
        _declare_table = d.pop("declare_table", UNSET)
        declare_table: DeclareTableRequest | Unset
        if isinstance(_declare_table, Unset):
            declare_table = UNSET
        else:
            declare_table = DeclareTableRequest.from_dict(_declare_table)

        _create_table_version = d.pop("create_table_version", UNSET)
        create_table_version: CreateTableVersionRequest | Unset
        if isinstance(_create_table_version, Unset):
            create_table_version = UNSET
        else:
            create_table_version = CreateTableVersionRequest.from_dict(_create_table_version)

        _delete_table_versions = d.pop("delete_table_versions", UNSET)
        delete_table_versions: BatchDeleteTableVersionsRequest | Unset
        if isinstance(_delete_table_versions, Unset):
            delete_table_versions = UNSET
        else:
            delete_table_versions = BatchDeleteTableVersionsRequest.from_dict(_delete_table_versions)

        _deregister_table = d.pop("deregister_table", UNSET)
        deregister_table: DeregisterTableRequest | Unset
        if isinstance(_deregister_table, Unset):
            deregister_table = UNSET
        else:
            deregister_table = DeregisterTableRequest.from_dict(_deregister_table)

        _commit_transaction = d.pop("commit_transaction", UNSET)
        commit_transaction: CommitTransactionRequest | Unset
        if isinstance(_commit_transaction, Unset):
            commit_transaction = UNSET
        else:
            commit_transaction = CommitTransactionRequest.from_dict(_commit_transaction)

        _assert_table_version = d.pop("assert_table_version", UNSET)
        assert_table_version: AssertTableVersionRequest | Unset
        if isinstance(_assert_table_version, Unset):
            assert_table_version = UNSET
        else:
            assert_table_version = AssertTableVersionRequest.from_dict(_assert_table_version)

        _set_table_properties = d.pop("set_table_properties", UNSET)
        set_table_properties: SetTablePropertiesRequest | Unset
        if isinstance(_set_table_properties, Unset):
            set_table_properties = UNSET
        else:
            set_table_properties = SetTablePropertiesRequest.from_dict(_set_table_properties)

        _undrop_table = d.pop("undrop_table", UNSET)
        undrop_table: UndropTableRequest | Unset
        if isinstance(_undrop_table, Unset):
            undrop_table = UNSET
        else:
            undrop_table = UndropTableRequest.from_dict(_undrop_table)

        _drop_table = d.pop("drop_table", UNSET)
        drop_table: DropTableRequest | Unset
        if isinstance(_drop_table, Unset):
            drop_table = UNSET
        else:
            drop_table = DropTableRequest.from_dict(_drop_table)

        _rename_table = d.pop("rename_table", UNSET)
        rename_table: RenameTableRequest | Unset
        if isinstance(_rename_table, Unset):
            rename_table = UNSET
        else:
            rename_table = RenameTableRequest.from_dict(_rename_table)

        _pin_catalog_version = d.pop("pin_catalog_version", UNSET)
        pin_catalog_version: PinCatalogVersionRequest | Unset
        if isinstance(_pin_catalog_version, Unset):
            pin_catalog_version = UNSET
        else:
            pin_catalog_version = PinCatalogVersionRequest.from_dict(_pin_catalog_version)

        _unpin_catalog_version = d.pop("unpin_catalog_version", UNSET)
        unpin_catalog_version: UnpinCatalogVersionRequest | Unset
        if isinstance(_unpin_catalog_version, Unset):
            unpin_catalog_version = UNSET
        else:
            unpin_catalog_version = UnpinCatalogVersionRequest.from_dict(_unpin_catalog_version)

        _advance_cursor = d.pop("advance_cursor", UNSET)
        advance_cursor: AdvanceCursorRequest | Unset
        if isinstance(_advance_cursor, Unset):
            advance_cursor = UNSET
        else:
            advance_cursor = AdvanceCursorRequest.from_dict(_advance_cursor)

        _delete_cursor = d.pop("delete_cursor", UNSET)
        delete_cursor: DeleteCursorRequest | Unset
        if isinstance(_delete_cursor, Unset):
            delete_cursor = UNSET
        else:
            delete_cursor = DeleteCursorRequest.from_dict(_delete_cursor)

        _register_intent = d.pop("register_intent", UNSET)
        register_intent: RegisterIntentRequest | Unset
        if isinstance(_register_intent, Unset):
            register_intent = UNSET
        else:
            register_intent = RegisterIntentRequest.from_dict(_register_intent)

        _end_intent = d.pop("end_intent", UNSET)
        end_intent: EndIntentRequest | Unset
        if isinstance(_end_intent, Unset):
            end_intent = UNSET
        else:
            end_intent = EndIntentRequest.from_dict(_end_intent)

        _enable_grants = d.pop("enable_grants", UNSET)
        enable_grants: EnableGrantsRequest | Unset
        if isinstance(_enable_grants, Unset):
            enable_grants = UNSET
        else:
            enable_grants = EnableGrantsRequest.from_dict(_enable_grants)

        _grant_privileges = d.pop("grant_privileges", UNSET)
        grant_privileges: GrantPrivilegesRequest | Unset
        if isinstance(_grant_privileges, Unset):
            grant_privileges = UNSET
        else:
            grant_privileges = GrantPrivilegesRequest.from_dict(_grant_privileges)

        _revoke_privileges = d.pop("revoke_privileges", UNSET)
        revoke_privileges: RevokePrivilegesRequest | Unset
        if isinstance(_revoke_privileges, Unset):
            revoke_privileges = UNSET
        else:
            revoke_privileges = RevokePrivilegesRequest.from_dict(_revoke_privileges)

        _grant_role = d.pop("grant_role", UNSET)
        grant_role: GrantRoleRequest | Unset
        if isinstance(_grant_role, Unset):
            grant_role = UNSET
        else:
            grant_role = GrantRoleRequest.from_dict(_grant_role)

        _revoke_role = d.pop("revoke_role", UNSET)
        revoke_role: RevokeRoleRequest | Unset
        if isinstance(_revoke_role, Unset):
            revoke_role = UNSET
        else:
            revoke_role = RevokeRoleRequest.from_dict(_revoke_role)

        commit_table_operation = cls(
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

        commit_table_operation.additional_properties = d
        return commit_table_operation

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
