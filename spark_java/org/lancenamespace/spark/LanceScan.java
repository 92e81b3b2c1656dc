package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** Rows of one version, read by Python in the tasks. The plan comes from the Python process of the driver. */
final class LanceScan implements SupportsReportStatistics {
  private final LanceTable table;
  private final StructType schema;
  private final List<String> filters;
  private final int limit;
  private final JsonNode plan;

  LanceScan(LanceTable table, StructType schema, List<String> filters, int limit, JsonNode plan) {
    this.table = table;
    this.schema = schema;
    this.filters = List.copyOf(filters);
    this.limit = limit;
    this.plan = plan;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return "lance " + table.name() + " version " + plan.get("version").asText() + " of catalog version "
        + table.catalogVersion() + ", columns " + String.join(",", schema.fieldNames()) + ", filter "
        + (filters.isEmpty() ? "none" : String.join(" AND ", filters)) + ", limit " + (limit < 0 ? "none" : limit)
        + (table.ref().has("options") ? ", options " + table.ref().get("options") : "");
  }

  @Override
  public Statistics estimateStatistics() {
    return ScanSize.of(plan);
  }

  @Override
  public Batch toBatch() {
    return SplitBatch.of(table.calls().settings().workerPython(), plan);
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LanceScan scan && scan.table.ref().equals(table.ref()) && scan.schema.equals(schema)
        && scan.filters.equals(filters) && scan.limit == limit;
  }

  @Override
  public int hashCode() {
    return java.util.Objects.hash(table.ref(), schema, filters, limit);
  }
}
