package org.lancenamespace.spark;

import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** For {@code spark.sql.extensions}: the rules of queries and writes that use catalogs of this package. */
public final class LanceExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(rule(OptionsOfNames::new));
    extensions.injectHintResolutionRule(rule(MergedSchemas::new));
    extensions.injectHintResolutionRule(rule(session -> new UnmadeTables()));
    extensions.injectPostHocResolutionRule(rule(session -> new OneCatalogVersion()));
    extensions.injectPostHocResolutionRule(rule(session -> new SourceWrites()));
    extensions.injectPreCBORule(rule(JoinedPartitions::new));
    extensions.injectParser(new AbstractFunction2<>() {
      @Override
      public ParserInterface apply(SparkSession session, ParserInterface parser) {
        return LanceParser.of((org.apache.spark.sql.classic.SparkSession) session, parser);
      }
    });
    return BoxedUnit.UNIT;
  }

  private static AbstractFunction1<SparkSession, Rule<LogicalPlan>> rule(
      Function<org.apache.spark.sql.classic.SparkSession, Rule<LogicalPlan>> made) {
    return new AbstractFunction1<>() {
      @Override
      public Rule<LogicalPlan> apply(SparkSession session) {
        return made.apply((org.apache.spark.sql.classic.SparkSession) session);
      }
    };
  }
}
