package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Options of tables that are read by name decide how the catalog loads them.
 *
 * <p>Spark loads a table without the options, and loads it once for a query that names it with several. Its versions are
 * told apart, so the options become one. The rule runs before relations are resolved.
 *
 * <p>In a transaction of Spark the relations of DataFrames are loaded again, by their names alone. So these get names
 * that hold their version and their options.
 */
final class OptionsOfNames extends Rule<LogicalPlan> {
  private static final String VERSION_KEY = "spark.sql.timeTravelVersionKey";
  private static final String TIMESTAMP_KEY = "spark.sql.timeTravelTimestampKey";

  private final SparkSession session;

  OptionsOfNames(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan named = plan.transformWithSubqueries(new Unresolved());
    return named instanceof Command ? named.transformWithSubqueries(new OfDataFrames()) : named;
  }

  /**
   * Options that are not Spark's own, by lower-case name.
   *
   * <p>Throws {@code IllegalArgumentException} for one that is there twice, in letters of another case.
   */
  static Map<String, String> given(CaseInsensitiveStringMap options) {
    if (options.asCaseSensitiveMap().size() != options.size()) {
      throw new IllegalArgumentException("options " + String.join(", ", new TreeMap<>(options.asCaseSensitiveMap()).keySet())
          + ": expected each name once, in letters of any case");
    }
    Map<String, String> given = new TreeMap<>(options);
    given.remove(key(VERSION_KEY));
    given.remove(key(TIMESTAMP_KEY));
    given.remove(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES());
    return given;
  }

  private static String key(String setting) {
    return SQLConf.get().getConfString(setting).toLowerCase(java.util.Locale.ROOT);
  }

  /** Names that are not resolved yet. */
  private final class Unresolved extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      UnresolvedRelation relation = relation(plan);
      return relation != null && (relation.isStreaming() || !given(relation.options()).isEmpty())
          && LanceNames.find(session, relation.multipartIdentifier()) != null;
    }

    private UnresolvedRelation relation(LogicalPlan plan) {
      if (plan instanceof UnresolvedRelation relation) {
        return relation;
      }
      boolean isVersion = plan instanceof RelationTimeTravel travel && travel.version().isDefined();
      return isVersion && ((RelationTimeTravel) plan).relation() instanceof UnresolvedRelation relation ? relation : null;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      UnresolvedRelation relation = relation(plan);
      if (relation.isStreaming()) {
        return stream(relation);
      }
      ObjectNode arguments = PythonProcess.JSON.createObjectNode();
      arguments.set("options", Calls.strings(given(relation.options())));
      String version = plan instanceof RelationTimeTravel travel ? travel.version().get()
          : relation.options().get(key(VERSION_KEY));
      if (version != null) {
        arguments.put("version", version);
      }
      if (relation.options().containsKey(key(TIMESTAMP_KEY))) {
        throw new IllegalArgumentException(relation.name() + ": option " + SQLConf.get().getConfString(TIMESTAMP_KEY)
            + ": expected option timestamp with the options " + String.join(", ", given(relation.options()).keySet()));
      }
      Map<String, String> options = new TreeMap<>();
      options.put(key(VERSION_KEY), new ReadRequest(arguments).version());
      return relation.copy(relation.multipartIdentifier(), new CaseInsensitiveStringMap(options), false);
    }
  }

  /** A stream of a table by name is one of the data source {@code lance}. */
  private LogicalPlan stream(UnresolvedRelation relation) {
    LanceNames named = LanceNames.find(session, relation.multipartIdentifier());
    Map<String, String> options = given(relation.options());
    for (String travel : List.of(VERSION_KEY, TIMESTAMP_KEY)) {
      if (relation.options().containsKey(key(travel))) {
        throw new IllegalArgumentException(relation.name() + ": option " + SQLConf.get().getConfString(travel)
            + ": expected none for a stream, which begins at its starting_version");
      }
    }
    options.putAll(SourceWrites.place(named.catalog().calls().settings(), named.path()));
    LogicalPlan source = session.readStream().format(SourceWrites.SOURCE).options(options).load().logicalPlan();
    return SubqueryAlias$.MODULE$.apply(relation.multipartIdentifier(), source);
  }

  /** Relations of DataFrames that are not of their table as it is. */
  private static final class OfDataFrames extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2Relation relation && relation.table() instanceof LanceTable table
          && table.calls().statement() == null && !table.request().isNone() && relation.identifier().isDefined()
          && ReadRequest.of(relation.identifier().get()).isNone();
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      DataSourceV2Relation relation = (DataSourceV2Relation) plan;
      LanceTable table = (LanceTable) relation.table();
      return relation.copy(table, relation.output(), relation.catalog(),
          Option.apply(table.request().in(table.identifier())), relation.options(), relation.timeTravelSpec());
    }
  }
}
