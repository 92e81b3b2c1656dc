package org.lancenamespace.spark;

import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** For {@code spark.sql.extensions}: a query reads one catalog version, and Spark measures no batch without need. */
public final class LanceExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    inject(extensions, OneCatalogVersion::new);
    inject(extensions, SourceWrites::new);
    return BoxedUnit.UNIT;
  }

  private static void inject(SparkSessionExtensions extensions, Supplier<Rule<LogicalPlan>> rule) {
    extensions.injectPostHocResolutionRule(new AbstractFunction1<SparkSession, Rule<LogicalPlan>>() {
      @Override
      public Rule<LogicalPlan> apply(SparkSession session) {
        return rule.get();
      }
    });
  }
}
