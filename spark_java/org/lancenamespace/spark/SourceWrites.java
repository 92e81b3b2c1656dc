package org.lancenamespace.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;

/** Writes of the data source {@code lance}, which is written in Python, get {@link UnmeasuredBatches}. */
final class SourceWrites extends Rule<LogicalPlan> {
  private static final String SOURCE = "lance";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand write && write.table() instanceof DataSourceV2Relation relation
        && relation.table() instanceof PythonTable table && table.name().equals(SOURCE)) {
      return (LogicalPlan) write.withNewTable(relation.copy(new Target(table), relation.output(), relation.catalog(),
          relation.identifier(), relation.options(), relation.timeTravelSpec()));
    }
    return plan;
  }

  private record Target(PythonTable table) implements SupportsWrite {
    @Override
    public String name() {
      return table.name();
    }

    @Override
    public Column[] columns() {
      return table.columns();
    }

    @Override
    public Map<String, String> properties() {
      return table.properties();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return table.capabilities();
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new Builder(table.newWriteBuilder(info), info.schema());
    }
  }

  private record Builder(WriteBuilder python, StructType schema) implements SupportsTruncate {
    @Override
    public WriteBuilder truncate() {
      return new Builder(((SupportsTruncate) python).truncate(), schema);
    }

    @Override
    public Write build() {
      return new BatchOfRows(python.build(), schema);
    }
  }

  private record BatchOfRows(Write python, StructType schema) implements Write {
    @Override
    public BatchWrite toBatch() {
      return UnmeasuredBatches.of(python.toBatch(), schema);
    }

    @Override
    public String description() {
      return python.description();
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return python.supportedCustomMetrics();
    }

    @Override
    public CustomTaskMetric[] reportDriverMetrics() {
      return python.reportDriverMetrics();
    }
  }
}
