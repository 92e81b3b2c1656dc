package org.lancenamespace.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.Product;

/**
 * Batches of a stream into a table that its sink has not made yet, see {@link StreamTables}.
 *
 * <p>From 4.3 on Spark begins a transaction for each batch, and loads the table by its name in it. Until there is one,
 * the batch gets the table as it would be.
 */
final class UnmadeTables extends Rule<LogicalPlan> {
  private static final String BATCH = "WriteToMicroBatchDataSource";
  private static final String TARGET = "relation";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LanceTable table = plan.nodeName().equals(BATCH) ? unmade(MergedSchemas.element(plan, TARGET)) : null;
    return table == null ? plan
        : MergedSchemas.with(plan, TARGET, DataSourceV2Relation.create(table, Option.empty(), Option.empty()));
  }

  /** The table of a catalog and a name that Spark has not loaded yet, if there is none. */
  private static LanceTable unmade(Object target) {
    boolean isNamed = target instanceof Product name && name.productArity() > 1
        && name.productElement(0) instanceof LanceCatalog && name.productElement(1) instanceof Identifier;
    if (!isNamed) {
      return null;
    }
    Product name = (Product) target;
    return StreamTables.find((LanceCatalog) name.productElement(0), (Identifier) name.productElement(1));
  }
}
