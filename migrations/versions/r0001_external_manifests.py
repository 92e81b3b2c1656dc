"""The external manifest store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of committed versions, and the index that finds the unfinished ones."""
    op.create_table(
        "external_manifests",
        sa.Column("base_uri", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("staged", sa.Boolean(create_constraint=False), nullable=False),
        sa.PrimaryKeyConstraint("base_uri", "version", name="pk_external_manifests"),
    )
    op.create_index(
        "ix_external_manifests_staged",
        "external_manifests",
        ["base_uri"],
        sqlite_where=sa.text("staged"),
        postgresql_where=sa.text("staged"),
    )


def downgrade() -> None:
    """Remove both, unless there is a version that the object store has not got yet. Raises `CommandError`."""
    unfinished = op.get_bind().execute(sa.text("SELECT base_uri, version FROM external_manifests WHERE staged")).all()
    if unfinished:
        places = ", ".join(f"version {version} of {base_uri}" for base_uri, version in unfinished[:5])
        raise CommandError(
            f"{len(unfinished)} commits stand in external_manifests alone ({places}): read the tables first, "
            "which finishes them"
        )
    op.drop_index("ix_external_manifests_staged", table_name="external_manifests")
    op.drop_table("external_manifests")
