package org.lancenamespace.spark;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** Rows that are appended, that replace all rows, or that replace the rows of a filter. */
final class LanceWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final LanceTable table;
  private final LogicalWriteInfo info;
  private String mode = "append";
  private String where;

  LanceWriteBuilder(LanceTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  @Override
  public boolean canOverwrite(Predicate[] predicates) {
    return FilterSql.all(table, predicates).isPresent();
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    Optional<String> filter = FilterSql.all(table, predicates);
    where = filter.orElseThrow(() -> new IllegalArgumentException(table.name() + ": cannot overwrite by this filter"));
    mode = where.equals("true") ? "overwrite" : "overwrite_where";
    return this;
  }

  @Override
  public WriteBuilder truncate() {
    mode = "overwrite";
    return this;
  }

  /** A table without partitions is one partition, which every row is in. */
  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    return truncate();
  }

  @Override
  public Write build() {
    StagedRows rows = new StagedRows(table, mode, where, info.options());
    return new Write() {
      @Override
      public BatchWrite toBatch() {
        return rows.write(info);
      }

      @Override
      public StreamingWrite toStreaming() {
        Map<String, String> options = OptionsOfNames.given(info.options());
        options.putAll(SourceWrites.place(table.calls().settings(), table.path()));
        return SourceWrites.stream(info, options, mode.equals("overwrite"));
      }

      @Override
      public String description() {
        return "lance " + rows;
      }
    };
  }
}
