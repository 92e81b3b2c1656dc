"""Contains all the data models used in inputs/outputs"""

from .abort_multipart_write_response import AbortMultipartWriteResponse
from .add_columns_entry import AddColumnsEntry
from .add_columns_entry_virtual_column import AddColumnsEntryVirtualColumn
from .adopted_version import AdoptedVersion
from .advance_cursor_request import AdvanceCursorRequest
from .alter_columns_entry import AlterColumnsEntry
from .alter_columns_entry_virtual_column import AlterColumnsEntryVirtualColumn
from .alter_table_add_columns_request import AlterTableAddColumnsRequest
from .alter_table_add_columns_response import AlterTableAddColumnsResponse
from .alter_table_alter_columns_request import AlterTableAlterColumnsRequest
from .alter_table_alter_columns_response import AlterTableAlterColumnsResponse
from .alter_table_drop_columns_request import AlterTableDropColumnsRequest
from .alter_table_drop_columns_response import AlterTableDropColumnsResponse
from .alter_transaction_action import AlterTransactionAction
from .alter_transaction_request import AlterTransactionRequest
from .alter_transaction_response import AlterTransactionResponse
from .alter_transaction_response_properties import AlterTransactionResponseProperties
from .alter_transaction_set_property import AlterTransactionSetProperty
from .alter_transaction_set_status import AlterTransactionSetStatus
from .alter_transaction_unset_property import AlterTransactionUnsetProperty
from .analyze_table_query_plan_request import AnalyzeTableQueryPlanRequest
from .assert_table_version_request import AssertTableVersionRequest
from .assert_table_version_response import AssertTableVersionResponse
from .attempted_object import AttemptedObject
from .attempted_object_kind import AttemptedObjectKind
from .audited_batch import AuditedBatch
from .audited_version import AuditedVersion
from .batch_commit_tables_request import BatchCommitTablesRequest
from .batch_commit_tables_response import BatchCommitTablesResponse
from .batch_create_table_versions_request import BatchCreateTableVersionsRequest
from .batch_create_table_versions_response import BatchCreateTableVersionsResponse
from .batch_delete_table_versions_request import BatchDeleteTableVersionsRequest
from .batch_delete_table_versions_response import BatchDeleteTableVersionsResponse
from .boolean_query import BooleanQuery
from .boost_query import BoostQuery
from .branch_column import BranchColumn
from .branch_column_change import BranchColumnChange
from .branch_contents import BranchContents
from .branch_contents_metadata import BranchContentsMetadata
from .branch_difference import BranchDifference
from .branch_index import BranchIndex
from .branch_obstacle import BranchObstacle
from .branch_preview import BranchPreview
from .branch_rows import BranchRows
from .catalog_batch import CatalogBatch
from .catalog_change import CatalogChange
from .catalog_event import CatalogEvent
from .catalog_event_datacontenttype import CatalogEventDatacontenttype
from .catalog_event_specversion import CatalogEventSpecversion
from .catalog_figures import CatalogFigures
from .catalog_pin import CatalogPin
from .catalog_pin_response import CatalogPinResponse
from .catalog_table import CatalogTable
from .catalog_table_branches import CatalogTableBranches
from .catalog_version import CatalogVersion
from .change_grants_request import ChangeGrantsRequest
from .change_grants_response import ChangeGrantsResponse
from .check_privilege_request import CheckPrivilegeRequest
from .check_privilege_response import CheckPrivilegeResponse
from .checked_authorization import CheckedAuthorization
from .checked_authorization_kind import CheckedAuthorizationKind
from .cherry_pick_table_branch_request import CherryPickTableBranchRequest
from .cherry_pick_table_branch_response import CherryPickTableBranchResponse
from .clone_table_request import CloneTableRequest
from .clone_table_response import CloneTableResponse
from .commit_table_operation import CommitTableOperation
from .commit_table_result import CommitTableResult
from .commit_transaction_request import CommitTransactionRequest
from .commit_transaction_request_data_storage_version import CommitTransactionRequestDataStorageVersion
from .commit_transaction_response import CommitTransactionResponse
from .complete_multipart_write_request import CompleteMultipartWriteRequest
from .context import Context
from .count_table_rows_request import CountTableRowsRequest
from .create_multipart_write_response import CreateMultipartWriteResponse
from .create_namespace_request import CreateNamespaceRequest
from .create_namespace_response import CreateNamespaceResponse
from .create_table_branch_request import CreateTableBranchRequest
from .create_table_branch_response import CreateTableBranchResponse
from .create_table_index_request import CreateTableIndexRequest
from .create_table_index_response import CreateTableIndexResponse
from .create_table_response import CreateTableResponse
from .create_table_scalar_index_response import CreateTableScalarIndexResponse
from .create_table_tag_request import CreateTableTagRequest
from .create_table_tag_response import CreateTableTagResponse
from .create_table_version_entry import CreateTableVersionEntry
from .create_table_version_entry_metadata import CreateTableVersionEntryMetadata
from .create_table_version_request import CreateTableVersionRequest
from .create_table_version_request_metadata import CreateTableVersionRequestMetadata
from .create_table_version_response import CreateTableVersionResponse
from .cursor import Cursor
from .cursor_response import CursorResponse
from .data_file import DataFile
from .declare_table_request import DeclareTableRequest
from .declare_table_response import DeclareTableResponse
from .delete_cursor_request import DeleteCursorRequest
from .delete_from_table_request import DeleteFromTableRequest
from .delete_from_table_response import DeleteFromTableResponse
from .delete_table_branch_request import DeleteTableBranchRequest
from .delete_table_branch_response import DeleteTableBranchResponse
from .delete_table_tag_request import DeleteTableTagRequest
from .delete_table_tag_response import DeleteTableTagResponse
from .deregister_table_request import DeregisterTableRequest
from .deregister_table_response import DeregisterTableResponse
from .describe_catalog_response import DescribeCatalogResponse
from .describe_catalog_version_response import DescribeCatalogVersionResponse
from .describe_namespace_request import DescribeNamespaceRequest
from .describe_namespace_response import DescribeNamespaceResponse
from .describe_table_index_stats_request import DescribeTableIndexStatsRequest
from .describe_table_index_stats_response import DescribeTableIndexStatsResponse
from .describe_table_request import DescribeTableRequest
from .describe_table_response import DescribeTableResponse
from .describe_table_response_metadata import DescribeTableResponseMetadata
from .describe_table_version_request import DescribeTableVersionRequest
from .describe_table_version_response import DescribeTableVersionResponse
from .describe_transaction_request import DescribeTransactionRequest
from .describe_transaction_response import DescribeTransactionResponse
from .describe_transaction_response_properties import DescribeTransactionResponseProperties
from .diff_table_branch_request import DiffTableBranchRequest
from .drop_namespace_request import DropNamespaceRequest
from .drop_namespace_response import DropNamespaceResponse
from .drop_table_index_response import DropTableIndexResponse
from .drop_table_request import DropTableRequest
from .drop_table_response import DropTableResponse
from .dropped_table import DroppedTable
from .enable_grants_request import EnableGrantsRequest
from .enable_grants_response import EnableGrantsResponse
from .end_intent_request import EndIntentRequest
from .error_response import ErrorResponse
from .error_response_outcome import ErrorResponseOutcome
from .event_data import EventData
from .event_data_kind import EventDataKind
from .event_table import EventTable
from .explain_table_query_plan_request import ExplainTableQueryPlanRequest
from .failed_operation import FailedOperation
from .failed_operation_kind import FailedOperationKind
from .fetch_table_blobs_request import FetchTableBlobsRequest
from .find_tables_response import FindTablesResponse
from .fragment import Fragment
from .fragment_stats import FragmentStats
from .fragment_summary import FragmentSummary
from .fts_query import FtsQuery
from .get_table_stats_request import GetTableStatsRequest
from .get_table_stats_response import GetTableStatsResponse
from .get_table_tag_version_request import GetTableTagVersionRequest
from .get_table_tag_version_response import GetTableTagVersionResponse
from .grant import Grant
from .grant_change import GrantChange
from .grant_privileges_request import GrantPrivilegesRequest
from .grant_role_request import GrantRoleRequest
from .granted_object import GrantedObject
from .grantee import Grantee
from .health_live_response import HealthLiveResponse
from .health_ready_response import HealthReadyResponse
from .health_ready_response_mode import HealthReadyResponseMode
from .identity import Identity
from .index_content import IndexContent
from .insert_into_table_response import InsertIntoTableResponse
from .intended_table import IntendedTable
from .intent import Intent
from .intent_response import IntentResponse
from .json_arrow_data_type import JsonArrowDataType
from .json_arrow_field import JsonArrowField
from .json_arrow_field_metadata import JsonArrowFieldMetadata
from .json_arrow_schema import JsonArrowSchema
from .json_arrow_schema_metadata import JsonArrowSchemaMetadata
from .list_audited_versions_response import ListAuditedVersionsResponse
from .list_catalog_events_response import ListCatalogEventsResponse
from .list_catalog_pins_response import ListCatalogPinsResponse
from .list_catalog_versions_response import ListCatalogVersionsResponse
from .list_cursors_response import ListCursorsResponse
from .list_dropped_tables_response import ListDroppedTablesResponse
from .list_grants_response import ListGrantsResponse
from .list_intents_response import ListIntentsResponse
from .list_namespaces_response import ListNamespacesResponse
from .list_refused_attempts_response import ListRefusedAttemptsResponse
from .list_table_branches_response import ListTableBranchesResponse
from .list_table_branches_response_branches import ListTableBranchesResponseBranches
from .list_table_fragments_response import ListTableFragmentsResponse
from .list_table_indices_request import ListTableIndicesRequest
from .list_table_indices_response import ListTableIndicesResponse
from .list_table_tags_response import ListTableTagsResponse
from .list_table_tags_response_tags import ListTableTagsResponseTags
from .list_table_versions_response import ListTableVersionsResponse
from .list_tables_response import ListTablesResponse
from .maintain_table_request import MaintainTableRequest
from .maintain_table_response import MaintainTableResponse
from .maintenance_work import MaintenanceWork
from .match_query import MatchQuery
from .merge_insert_into_table_response import MergeInsertIntoTableResponse
from .multi_match_query import MultiMatchQuery
from .namespace_exists_request import NamespaceExistsRequest
from .operation_failure import OperationFailure
from .operation_failure_kind import OperationFailureKind
from .phrase_query import PhraseQuery
from .pin_catalog_version_request import PinCatalogVersionRequest
from .privilege import Privilege
from .properties import Properties
from .query_order import QueryOrder
from .query_table_request import QueryTableRequest
from .query_table_request_columns import QueryTableRequestColumns
from .query_table_request_columns_column_aliases import QueryTableRequestColumnsColumnAliases
from .query_table_request_full_text_query import QueryTableRequestFullTextQuery
from .query_table_request_vector import QueryTableRequestVector
from .read_table_changes_request import ReadTableChangesRequest
from .refusal_decision import RefusalDecision
from .refused_attempt import RefusedAttempt
from .refused_attempt_event import RefusedAttemptEvent
from .refused_attempt_means import RefusedAttemptMeans
from .register_intent_request import RegisterIntentRequest
from .register_table_request import RegisterTableRequest
from .register_table_response import RegisterTableResponse
from .rename_table_request import RenameTableRequest
from .rename_table_response import RenameTableResponse
from .request_origin import RequestOrigin
from .restore_table_request import RestoreTableRequest
from .restore_table_response import RestoreTableResponse
from .revoke_privileges_request import RevokePrivilegesRequest
from .revoke_role_request import RevokeRoleRequest
from .role_membership import RoleMembership
from .set_table_properties_request import SetTablePropertiesRequest
from .set_table_properties_response import SetTablePropertiesResponse
from .stage_delete_response import StageDeleteResponse
from .stage_merge_response import StageMergeResponse
from .stage_rows_response import StageRowsResponse
from .stage_update_response import StageUpdateResponse
from .string_fts_query import StringFtsQuery
from .structured_fts_query import StructuredFtsQuery
from .table_basic_stats import TableBasicStats
from .table_exists_request import TableExistsRequest
from .table_of_intent import TableOfIntent
from .table_version import TableVersion
from .table_version_metadata import TableVersionMetadata
from .table_worth_maintenance import TableWorthMaintenance
from .tag_contents import TagContents
from .undrop_namespace_request import UndropNamespaceRequest
from .undrop_namespace_response import UndropNamespaceResponse
from .undrop_table_request import UndropTableRequest
from .undrop_table_response import UndropTableResponse
from .unpin_catalog_version_request import UnpinCatalogVersionRequest
from .update_field_metadata_entry import UpdateFieldMetadataEntry
from .update_field_metadata_entry_metadata import UpdateFieldMetadataEntryMetadata
from .update_field_metadata_request import UpdateFieldMetadataRequest
from .update_field_metadata_response import UpdateFieldMetadataResponse
from .update_field_metadata_response_fields import UpdateFieldMetadataResponseFields
from .update_field_metadata_response_fields_additional_property import (
    UpdateFieldMetadataResponseFieldsAdditionalProperty,
)
from .update_table_request import UpdateTableRequest
from .update_table_request_properties import UpdateTableRequestProperties
from .update_table_response import UpdateTableResponse
from .update_table_schema_metadata_body import UpdateTableSchemaMetadataBody
from .update_table_schema_metadata_response_200 import UpdateTableSchemaMetadataResponse200
from .update_table_tag_request import UpdateTableTagRequest
from .update_table_tag_response import UpdateTableTagResponse
from .used_grant import UsedGrant
from .used_grant_kind import UsedGrantKind
from .vended_options import VendedOptions
from .version_range import VersionRange
from .who_am_i_response import WhoAmIResponse
from .who_am_i_response_means import WhoAmIResponseMeans

__all__ = (
    "AbortMultipartWriteResponse",
    "AddColumnsEntry",
    "AddColumnsEntryVirtualColumn",
    "AdoptedVersion",
    "AdvanceCursorRequest",
    "AlterColumnsEntry",
    "AlterColumnsEntryVirtualColumn",
    "AlterTableAddColumnsRequest",
    "AlterTableAddColumnsResponse",
    "AlterTableAlterColumnsRequest",
    "AlterTableAlterColumnsResponse",
    "AlterTableDropColumnsRequest",
    "AlterTableDropColumnsResponse",
    "AlterTransactionAction",
    "AlterTransactionRequest",
    "AlterTransactionResponse",
    "AlterTransactionResponseProperties",
    "AlterTransactionSetProperty",
    "AlterTransactionSetStatus",
    "AlterTransactionUnsetProperty",
    "AnalyzeTableQueryPlanRequest",
    "AssertTableVersionRequest",
    "AssertTableVersionResponse",
    "AttemptedObject",
    "AttemptedObjectKind",
    "AuditedBatch",
    "AuditedVersion",
    "BatchCommitTablesRequest",
    "BatchCommitTablesResponse",
    "BatchCreateTableVersionsRequest",
    "BatchCreateTableVersionsResponse",
    "BatchDeleteTableVersionsRequest",
    "BatchDeleteTableVersionsResponse",
    "BooleanQuery",
    "BoostQuery",
    "BranchColumn",
    "BranchColumnChange",
    "BranchContents",
    "BranchContentsMetadata",
    "BranchDifference",
    "BranchIndex",
    "BranchObstacle",
    "BranchPreview",
    "BranchRows",
    "CatalogBatch",
    "CatalogChange",
    "CatalogEvent",
    "CatalogEventDatacontenttype",
    "CatalogEventSpecversion",
    "CatalogFigures",
    "CatalogPin",
    "CatalogPinResponse",
    "CatalogTable",
    "CatalogTableBranches",
    "CatalogVersion",
    "ChangeGrantsRequest",
    "ChangeGrantsResponse",
    "CheckPrivilegeRequest",
    "CheckPrivilegeResponse",
    "CheckedAuthorization",
    "CheckedAuthorizationKind",
    "CherryPickTableBranchRequest",
    "CherryPickTableBranchResponse",
    "CloneTableRequest",
    "CloneTableResponse",
    "CommitTableOperation",
    "CommitTableResult",
    "CommitTransactionRequest",
    "CommitTransactionRequestDataStorageVersion",
    "CommitTransactionResponse",
    "CompleteMultipartWriteRequest",
    "Context",
    "CountTableRowsRequest",
    "CreateMultipartWriteResponse",
    "CreateNamespaceRequest",
    "CreateNamespaceResponse",
    "CreateTableBranchRequest",
    "CreateTableBranchResponse",
    "CreateTableIndexRequest",
    "CreateTableIndexResponse",
    "CreateTableResponse",
    "CreateTableScalarIndexResponse",
    "CreateTableTagRequest",
    "CreateTableTagResponse",
    "CreateTableVersionEntry",
    "CreateTableVersionEntryMetadata",
    "CreateTableVersionRequest",
    "CreateTableVersionRequestMetadata",
    "CreateTableVersionResponse",
    "Cursor",
    "CursorResponse",
    "DataFile",
    "DeclareTableRequest",
    "DeclareTableResponse",
    "DeleteCursorRequest",
    "DeleteFromTableRequest",
    "DeleteFromTableResponse",
    "DeleteTableBranchRequest",
    "DeleteTableBranchResponse",
    "DeleteTableTagRequest",
    "DeleteTableTagResponse",
    "DeregisterTableRequest",
    "DeregisterTableResponse",
    "DescribeCatalogResponse",
    "DescribeCatalogVersionResponse",
    "DescribeNamespaceRequest",
    "DescribeNamespaceResponse",
    "DescribeTableIndexStatsRequest",
    "DescribeTableIndexStatsResponse",
    "DescribeTableRequest",
    "DescribeTableResponse",
    "DescribeTableResponseMetadata",
    "DescribeTableVersionRequest",
    "DescribeTableVersionResponse",
    "DescribeTransactionRequest",
    "DescribeTransactionResponse",
    "DescribeTransactionResponseProperties",
    "DiffTableBranchRequest",
    "DropNamespaceRequest",
    "DropNamespaceResponse",
    "DropTableIndexResponse",
    "DropTableRequest",
    "DropTableResponse",
    "DroppedTable",
    "EnableGrantsRequest",
    "EnableGrantsResponse",
    "EndIntentRequest",
    "ErrorResponse",
    "ErrorResponseOutcome",
    "EventData",
    "EventDataKind",
    "EventTable",
    "ExplainTableQueryPlanRequest",
    "FailedOperation",
    "FailedOperationKind",
    "FetchTableBlobsRequest",
    "FindTablesResponse",
    "Fragment",
    "FragmentStats",
    "FragmentSummary",
    "FtsQuery",
    "GetTableStatsRequest",
    "GetTableStatsResponse",
    "GetTableTagVersionRequest",
    "GetTableTagVersionResponse",
    "Grant",
    "GrantChange",
    "GrantPrivilegesRequest",
    "GrantRoleRequest",
    "GrantedObject",
    "Grantee",
    "HealthLiveResponse",
    "HealthReadyResponse",
    "HealthReadyResponseMode",
    "Identity",
    "IndexContent",
    "InsertIntoTableResponse",
    "IntendedTable",
    "Intent",
    "IntentResponse",
    "JsonArrowDataType",
    "JsonArrowField",
    "JsonArrowFieldMetadata",
    "JsonArrowSchema",
    "JsonArrowSchemaMetadata",
    "ListAuditedVersionsResponse",
    "ListCatalogEventsResponse",
    "ListCatalogPinsResponse",
    "ListCatalogVersionsResponse",
    "ListCursorsResponse",
    "ListDroppedTablesResponse",
    "ListGrantsResponse",
    "ListIntentsResponse",
    "ListNamespacesResponse",
    "ListRefusedAttemptsResponse",
    "ListTableBranchesResponse",
    "ListTableBranchesResponseBranches",
    "ListTableFragmentsResponse",
    "ListTableIndicesRequest",
    "ListTableIndicesResponse",
    "ListTableTagsResponse",
    "ListTableTagsResponseTags",
    "ListTableVersionsResponse",
    "ListTablesResponse",
    "MaintainTableRequest",
    "MaintainTableResponse",
    "MaintenanceWork",
    "MatchQuery",
    "MergeInsertIntoTableResponse",
    "MultiMatchQuery",
    "NamespaceExistsRequest",
    "OperationFailure",
    "OperationFailureKind",
    "PhraseQuery",
    "PinCatalogVersionRequest",
    "Privilege",
    "Properties",
    "QueryOrder",
    "QueryTableRequest",
    "QueryTableRequestColumns",
    "QueryTableRequestColumnsColumnAliases",
    "QueryTableRequestFullTextQuery",
    "QueryTableRequestVector",
    "ReadTableChangesRequest",
    "RefusalDecision",
    "RefusedAttempt",
    "RefusedAttemptEvent",
    "RefusedAttemptMeans",
    "RegisterIntentRequest",
    "RegisterTableRequest",
    "RegisterTableResponse",
    "RenameTableRequest",
    "RenameTableResponse",
    "RequestOrigin",
    "RestoreTableRequest",
    "RestoreTableResponse",
    "RevokePrivilegesRequest",
    "RevokeRoleRequest",
    "RoleMembership",
    "SetTablePropertiesRequest",
    "SetTablePropertiesResponse",
    "StageDeleteResponse",
    "StageMergeResponse",
    "StageRowsResponse",
    "StageUpdateResponse",
    "StringFtsQuery",
    "StructuredFtsQuery",
    "TableBasicStats",
    "TableExistsRequest",
    "TableOfIntent",
    "TableVersion",
    "TableVersionMetadata",
    "TableWorthMaintenance",
    "TagContents",
    "UndropNamespaceRequest",
    "UndropNamespaceResponse",
    "UndropTableRequest",
    "UndropTableResponse",
    "UnpinCatalogVersionRequest",
    "UpdateFieldMetadataEntry",
    "UpdateFieldMetadataEntryMetadata",
    "UpdateFieldMetadataRequest",
    "UpdateFieldMetadataResponse",
    "UpdateFieldMetadataResponseFields",
    "UpdateFieldMetadataResponseFieldsAdditionalProperty",
    "UpdateTableRequest",
    "UpdateTableRequestProperties",
    "UpdateTableResponse",
    "UpdateTableSchemaMetadataBody",
    "UpdateTableSchemaMetadataResponse200",
    "UpdateTableTagRequest",
    "UpdateTableTagResponse",
    "UsedGrant",
    "UsedGrantKind",
    "VendedOptions",
    "VersionRange",
    "WhoAmIResponse",
    "WhoAmIResponseMeans",
)
