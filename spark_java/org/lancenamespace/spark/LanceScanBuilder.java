package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A scan of one version: columns that are read, filters and a limit of Lance, and counts: from metadata, or by tasks with a filter. */
final class LanceScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownLimit,
        SupportsPushDownAggregates {
  private final LanceTable table;
  private final List<Predicate> pushed = new ArrayList<>();
  private final List<String> filters = new ArrayList<>();
  private StructType columns;
  private int limit = -1;
  private int counts;

  LanceScanBuilder(LanceTable table) {
    this.table = table;
    this.columns = table.type();
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    if (table.isLimited()) {
      return predicates;
    }
    List<Predicate> left = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Optional<String> sql = FilterSql.one(table, predicate);
      if (sql.isPresent()) {
        pushed.add(predicate);
        filters.add(sql.get());
      } else {
        left.add(predicate);
      }
    }
    return left.toArray(new Predicate[0]);
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.toArray(new Predicate[0]);
  }

  @Override
  public void pruneColumns(StructType required) {
    // Parts of nested columns are not pruned: a column is read whole or not at all.
    StructType whole = new StructType();
    for (StructField field : required.fields()) {
      whole = whole.add(isRowColumn(field.name()) ? field : table.type().apply(field.name()));
    }
    columns = whole;
  }

  private boolean isRowColumn(String name) {
    return (name.equals(LanceTable.ROW_ADDRESS) || name.equals(LanceTable.ROW_ID))
        && table.type().getFieldIndex(name).isEmpty();
  }

  @Override
  public boolean pushLimit(int limit) {
    if (table.isLimited()) {
      return false;
    }
    this.limit = limit;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  @Override
  public boolean supportCompletePushDown(Aggregation aggregation) {
    return isCount(aggregation) && isCounted();
  }

  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    if (!isCount(aggregation)) {
      return false;
    }
    counts = aggregation.aggregateExpressions().length;
    return true;
  }

  /** Whether the manifest has the number of rows. */
  private boolean isCounted() {
    return filters.isEmpty() && table.hasAllRows();
  }

  private boolean isCount(Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0 || limit >= 0 || table.isLimited()) {
      return false;
    }
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      if (!(function instanceof CountStar)) {
        return false;
      }
    }
    return aggregation.aggregateExpressions().length > 0;
  }

  @Override
  public Scan build() {
    if (counts > 0 && isCounted()) {
      return counted();
    }
    StructType read = counts > 0 ? countColumns() : columns;
    ObjectNode arguments = table.calls().arguments(table.identifier());
    arguments.set("ref", table.ref());
    arguments.set("schema", Calls.json(read));
    arguments.put("filter", filters.isEmpty() ? null : String.join(" AND ", filters));
    arguments.put("limit", limit);
    arguments.put("counts", counts > 0);
    arguments.put("tasks", SparkSession.active().sparkContext().defaultParallelism());
    JsonNode plan = table.calls().call("plan_scan", arguments);
    return new LanceScan(table, read, filters, limit, plan);
  }

  private Scan counted() {
    ObjectNode arguments = table.calls().arguments(table.identifier());
    arguments.set("ref", table.ref());
    long rows = table.calls().call("count_rows", arguments).asLong();
    Object[] values = new Object[counts];
    Arrays.fill(values, rows);
    return new RowsScan("count of " + table.name(), countColumns(), values);
  }

  private StructType countColumns() {
    StructType schema = new StructType();
    for (int place = 0; place < counts; place++) {
      schema = schema.add("count_" + place, DataTypes.LongType, false);
    }
    return schema;
  }
}
