package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The changes of a table, version by version.
 *
 * <p>They are exact: rows that were only moved are not among them, and updated rows come as they were before and after.
 * So Spark has nothing to compute from them but net changes over several versions.
 */
record LanceChangelog(Calls calls, Identifier table, JsonNode found, StructType type) implements Changelog {
  private static final String ROW = "_row_id";
  private static final String COMMIT_VERSION = "_commit_version";

  @Override
  public String name() {
    return "changes of " + table + " after version " + found.get("ref").get("from").asLong() + " up to version "
        + found.get("ref").get("to").asLong();
  }

  @Override
  public Column[] columns() {
    return RowsTable.columns(type);
  }

  @Override
  public boolean containsCarryoverRows() {
    return false;
  }

  @Override
  public boolean containsIntermediateChanges() {
    return true;
  }

  @Override
  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(ROW)};
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(this);
  }

  /** A scan of the columns that a query uses. */
  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final LanceChangelog changes;
    private StructType columns;

    Builder(LanceChangelog changes) {
      this.changes = changes;
      this.columns = changes.type();
    }

    @Override
    public void pruneColumns(StructType required) {
      StructType whole = new StructType();
      for (var field : required.fields()) {
        whole = whole.add(changes.type().apply(field.name()));
      }
      columns = whole;
    }

    @Override
    public Scan build() {
      StructType read = columns.isEmpty() ? new StructType().add(changes.type().apply(COMMIT_VERSION)) : columns;
      ObjectNode arguments = changes.calls().arguments(changes.table());
      arguments.set("ref", changes.found().get("ref"));
      arguments.set("schema", Calls.json(read));
      JsonNode plan = changes.calls().call("plan_changes", arguments);
      return new LanceChangelogScan(changes, read, plan);
    }
  }
}
