package org.lancenamespace.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.runtime.AbstractPartialFunction;

/**
 * All tables of a query are read at one catalog version: the newest at which one of them was loaded.
 *
 * <p>The tables of an SQL statement have one version already. Those of DataFrames that were made at different times, and
 * are joined, do not. Time travel is left alone.
 */
final class OneCatalogVersion extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    Map<String, Long> newest = new HashMap<>();
    plan.transformWithSubqueries(new Relations() {
      @Override
      LogicalPlan visit(DataSourceV2Relation relation, LanceTable table) {
        newest.merge(table.calls().session(), table.catalogVersion(), Math::max);
        return relation;
      }
    });
    if (newest.isEmpty()) {
      return plan;
    }
    return plan.transformWithSubqueries(new Relations() {
      @Override
      LogicalPlan visit(DataSourceV2Relation relation, LanceTable table) {
        LanceTable pinned = table.at(newest.get(table.calls().session()));
        return pinned == table ? relation : relation.copy(pinned, relation.output(), relation.catalog(),
            relation.identifier(), relation.options(), relation.timeTravelSpec());
      }
    });
  }

  /** Visits the relations of this catalog that are not of a fixed version and not of a writing query. */
  private abstract static class Relations extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    abstract LogicalPlan visit(DataSourceV2Relation relation, LanceTable table);

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2Relation relation && relation.table() instanceof LanceTable table
          && !table.isFixed() && table.calls().statement() == null;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      DataSourceV2Relation relation = (DataSourceV2Relation) plan;
      return visit(relation, (LanceTable) relation.table());
    }
  }
}
