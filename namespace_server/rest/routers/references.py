"""Tags and branches of a table."""

from __future__ import annotations

from namespace_server.rest.handlers import Change, Commit, Read
from namespace_server.rest.models import Paging
from namespace_server.rest.routing import post

ROUTES = (
    # Everything in these lists is in the query; stock clients send no body, or `null`.
    post("list_table_tags", "/v1/table/{id}/tags/list", Read(Paging, body=True, optional=True)),
    post(
        "list_table_branches",
        "/v1/table/{id}/branches/list",
        Read(Paging, body=True, optional=True),
    ),
    post("get_table_tag_version", "/v1/table/{id}/tags/version", Read(body=True)),
    post("create_table_tag", "/v1/table/{id}/tags/create", Change()),
    post("update_table_tag", "/v1/table/{id}/tags/update", Change()),
    post("delete_table_tag", "/v1/table/{id}/tags/delete", Change()),
    post("create_table_branch", "/v1/table/{id}/branches/create", Commit()),
    post("delete_table_branch", "/v1/table/{id}/branches/delete", Change()),
)
