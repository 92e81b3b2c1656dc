package org.lancenamespace.spark;

import java.math.BigInteger;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Many partitions are written by a few tasks, since each task writes a data file.
 *
 * <p>The rule is that of graph writes, in {@code staging.py}: some tasks for each core, more where their rows would be
 * large, and one for rows that are certainly few. Fewer partitions, and a {@code coalesce} of the query, stay as they are.
 */
final class JoinedPartitions extends Rule<LogicalPlan> {
  private static final long TINY_BYTES = 1L << 20;
  private static final long TASK_BYTES = 128L << 20;
  private static final BigInteger UNKNOWN_BYTES = BigInteger.ONE.shiftLeft(60);
  private static final int TASKS_PER_CORE = 4;
  private static final int TASKS_PER_CORE_UNKNOWN = 32;
  private static final int MOST_TASKS = 100_000;
  private static final Set<String> PLAIN =
      Set.of("Range", "LocalRelation", "Project", "Filter", "Union", "Repartition", "RepartitionByExpression");

  private final SparkSession session;

  JoinedPartitions(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand write && write.table() instanceof DataSourceV2Relation relation
        && isLance(relation.table()) && !isCoalesced(write.query())) {
      return (LogicalPlan) write.withNewQuery(new Repartition(tasks(write.query()), false, write.query()));
    }
    return plan;
  }

  private static boolean isLance(Table table) {
    return table instanceof LanceTable || table instanceof SourceWrites.Target;
  }

  private static boolean isCoalesced(LogicalPlan query) {
    LogicalPlan top = query;
    while (top instanceof Project project) {
      top = project.child();
    }
    return top instanceof Repartition partitions && !partitions.shuffle();
  }

  private int tasks(LogicalPlan query) {
    int cores = session.sparkContext().defaultParallelism();
    BigInteger size = query.stats().sizeInBytes().bigInteger();
    if (size.compareTo(UNKNOWN_BYTES) >= 0) {
      return cores * TASKS_PER_CORE_UNKNOWN;
    }
    if (size.compareTo(BigInteger.valueOf(TINY_BYTES)) <= 0 && hasKnownRows(query)) {
      return 1;
    }
    long parts = size.divide(BigInteger.valueOf(TASK_BYTES)).longValueExact() + 1;
    return (int) Math.min(Math.max(cores * (long) TASKS_PER_CORE, parts), MOST_TASKS);
  }

  /** Whether Spark's estimate is an upper bound of the rows: no step makes more of them. */
  private static boolean hasKnownRows(LogicalPlan plan) {
    return PLAIN.contains(plan.nodeName())
        && CollectionConverters.asJava(plan.children()).stream().allMatch(JoinedPartitions::hasKnownRows);
  }
}
