"""Who did what from where, and what was refused; for auditors alone."""

from __future__ import annotations

from namespace_server.rest.auditing import AttemptsPage, AuditedVersions
from namespace_server.rest.routing import get

ROUTES = (
    get("list_audited_versions", "/v1/catalog/audit/versions", AuditedVersions()),
    get("list_refused_attempts", "/v1/catalog/audit/refused", AttemptsPage()),
)
