package org.lancenamespace.spark;

import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Product;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The option {@code mergeSchema} of a write by name becomes Spark's WITH SCHEMA EVOLUTION.
 *
 * <p>New columns are added in the transaction that Spark begins for the write. A Spark without transactions would commit
 * them before the rows, so it is refused there.
 */
final class MergedSchemas extends Rule<LogicalPlan> {
  static final String OPTION = "mergeSchema";
  private static final String CLAUSE = "withSchemaEvolution";

  private final SparkSession session;

  MergedSchemas(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof MergeIntoTable merge && merge.withSchemaEvolution()) {
      LanceCatalog catalog = catalogOf(merge.targetTable());
      if (catalog != null) {
        requireTransactions(catalog, "MERGE WITH SCHEMA EVOLUTION");
      }
      return plan;
    }
    String given = plan instanceof V2WriteCommand || plan instanceof InsertIntoStatement ? option(plan) : null;
    LanceCatalog catalog = given == null ? null : catalogOf((LogicalPlan) element(plan, "table"));
    if (catalog == null) {
      return plan;
    }
    boolean isMerged = switch (given.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException("option " + OPTION + ": expected true or false, found " + given);
    };
    if (isMerged) {
      requireTransactions(catalog, "option " + OPTION);
      return withEvolution(plan);
    }
    return plan;
  }

  /** The option of a writing command, or of the table that it names. */
  private static String option(LogicalPlan plan) {
    String given = null;
    if (element(plan, "writeOptions") instanceof scala.collection.Map<?, ?> options) {
      @SuppressWarnings("unchecked")
      Map<String, String> map = CollectionConverters.asJava((scala.collection.Map<String, String>) options);
      given = new CaseInsensitiveStringMap(map).get(OPTION);
    }
    boolean isNamed = given == null && element(plan, "table") instanceof UnresolvedRelation;
    return isNamed ? ((UnresolvedRelation) element(plan, "table")).options().get(OPTION) : given;
  }

  /** A part of a plan by its name, or null. */
  static Object element(LogicalPlan plan, String name) {
    Product product = (Product) plan;
    for (int place = 0; place < product.productArity(); place++) {
      if (product.productElementName(place).equals(name)) {
        return product.productElement(place);
      }
    }
    return null;
  }

  /** The same writing command with the clause. The number of its parts depends on the version of Spark. */
  private static LogicalPlan withEvolution(LogicalPlan plan) {
    return with(plan, CLAUSE, true);
  }

  /** The same plan with another part. */
  static LogicalPlan with(LogicalPlan plan, String name, Object part) {
    Product product = (Product) plan;
    Object[] parts = new Object[product.productArity()];
    for (int place = 0; place < parts.length; place++) {
      parts[place] = product.productElementName(place).equals(name) ? part : product.productElement(place);
    }
    return (LogicalPlan) plan.makeCopy(parts);
  }

  private static void requireTransactions(LanceCatalog catalog, String what) {
    if (!catalog.hasTransactions()) {
      throw new UnsupportedOperationException(
          what + ": expected PySpark 4.2 or newer, which adds columns in the transaction of the rows");
    }
  }

  private LanceCatalog catalogOf(LogicalPlan table) {
    LogicalPlan target = table;
    while (target.children().size() == 1) {
      target = (LogicalPlan) target.children().head();
    }
    if (target instanceof UnresolvedRelation relation) {
      LanceNames named = LanceNames.find(session, relation.multipartIdentifier());
      return named == null ? null : named.catalog();
    }
    if (target instanceof DataSourceV2Relation relation) {
      return relation.catalog().isDefined() && relation.catalog().get() instanceof LanceCatalog lance ? lance : null;
    }
    // A table that Spark will load again: the catalog is its first part.
    boolean isReference = target instanceof NamedRelation && ((Product) target).productArity() > 0;
    return isReference && ((Product) target).productElement(0) instanceof LanceCatalog lance ? lance : null;
  }
}
