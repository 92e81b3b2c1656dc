package org.lancenamespace.spark;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Writes of the data source {@code lance}, which is written in Python, get {@link UnmeasuredBatches}. */
final class SourceWrites extends Rule<LogicalPlan> {
  static final String SOURCE = "lance";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand write && write.table() instanceof DataSourceV2Relation relation
        && relation.table() instanceof PythonTable table && table.name().equals(SOURCE)) {
      return (LogicalPlan) write.withNewTable(relation.copy(new Target(table), relation.output(), relation.catalog(),
          relation.identifier(), relation.options(), relation.timeTravelSpec()));
    }
    return plan;
  }

  /** Options of the data source for a table in a catalog. */
  static Map<String, String> place(Settings settings, List<String> path) {
    Map<String, String> options = new TreeMap<>();
    options.put("server", settings.uri());
    options.put("table", String.join("$", path));
    if (settings.token() != null) {
      options.put("token", settings.token());
    }
    settings.storage().forEach((name, value) -> options.put("storage." + name, value));
    return options;
  }

  /** A stream of rows into a table, by the data source of a session. */
  static StreamingWrite stream(LogicalWriteInfo info, Map<String, String> options, boolean isTruncated) {
    TableProvider source = DataSource.lookupDataSourceV2(SOURCE, SQLConf.get()).get();
    PythonTable table = new PythonTable((PythonDataSourceV2) source, SOURCE, info.schema());
    WriteBuilder builder = table.newWriteBuilder(new LogicalWriteInfo() {
      @Override
      public CaseInsensitiveStringMap options() {
        return new CaseInsensitiveStringMap(options);
      }

      @Override
      public String queryId() {
        return info.queryId();
      }

      @Override
      public StructType schema() {
        return info.schema();
      }
    });
    return (isTruncated ? ((SupportsTruncate) builder).truncate() : builder).build().toStreaming();
  }

  record Target(PythonTable table) implements SupportsWrite {
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
