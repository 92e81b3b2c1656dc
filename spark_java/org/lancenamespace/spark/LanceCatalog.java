package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Spark's catalog over a catalog server. A statement that changes tables is one batch of the server. */
public class LanceCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  private static final String STABLE_ROW_IDS = "lance.stable_row_ids";

  private String name;
  private Calls calls;

  /** For Spark, which calls {@code initialize}. */
  public LanceCatalog() {}

  LanceCatalog(String name, Calls calls) {
    this.name = name;
    this.calls = calls;
  }

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.calls = Calls.of(name, Settings.of(name, options));
  }

  @Override
  public String name() {
    return name;
  }

  Calls calls() {
    return calls;
  }

  /** Whether Spark begins a transaction for each writing query. */
  boolean hasTransactions() {
    return false;
  }

  /** Equal to the catalog of a transaction in the same session, so that Spark finds a DataFrame's table in both. */
  @Override
  public boolean equals(Object other) {
    return other instanceof LanceCatalog same && calls != null && same.calls != null && same.name.equals(name)
        && same.calls.session().equals(calls.session());
  }

  @Override
  public int hashCode() {
    return calls == null ? 0 : calls.session().hashCode();
  }

  // -- namespaces

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] parent) {
    JsonNode names = ask("list_namespaces", parent, calls.arguments(parent));
    List<String[]> found = new ArrayList<>();
    for (JsonNode child : names) {
      String[] path = java.util.Arrays.copyOf(parent, parent.length + 1);
      path[parent.length] = child.asText();
      found.add(path);
    }
    return found.toArray(new String[0][]);
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return ask("namespace_exists", namespace, calls.arguments(namespace)).asBoolean();
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return Calls.map(ask("describe_namespace", namespace, calls.arguments(namespace)));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    ObjectNode arguments = calls.arguments(namespace);
    arguments.set("properties", Calls.strings(properties));
    ask("create_namespace", namespace, arguments);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("ALTER NAMESPACE " + String.join(".", namespace)
        + ": the properties of a namespace are set by CREATE NAMESPACE and cannot be changed later");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    ObjectNode arguments = calls.arguments(namespace).put("cascade", cascade);
    return ask("drop_namespace", namespace, arguments).asBoolean();
  }

  // -- tables

  @Override
  public Identifier[] listTables(String[] namespace) {
    JsonNode names = ask("list_tables", namespace, calls.arguments(namespace));
    List<Identifier> found = new ArrayList<>();
    names.forEach(table -> found.add(Identifier.of(namespace, table.asText())));
    return found.toArray(new Identifier[0]);
  }

  @Override
  public boolean tableExists(Identifier table) {
    return ask("table_exists", table, calls.arguments(table)).asBoolean();
  }

  @Override
  public Table loadTable(Identifier table) {
    LanceTable unmade = startsStream(table) ? StreamTables.find(this, table) : null;
    return unmade == null ? load(ReadRequest.table(table), ReadRequest.of(table)) : unmade;
  }

  @Override
  public Table loadTable(Identifier table, String version) {
    return load(table, ReadRequest.ofVersion(version));
  }

  @Override
  public Table loadTable(Identifier table, long timestamp) {
    return load(table, ReadRequest.ofTimestamp(timestamp));
  }

  private Table load(Identifier table, ReadRequest request) {
    ObjectNode arguments = calls.arguments(table);
    arguments.setAll(request.arguments());
    boolean isPinned = calls.statement() == null && !request.isTravel();
    Long pinned = isPinned ? AnalysisPins.find(calls.session()) : null;
    if (pinned != null) {
      arguments.put("catalog_version", pinned);
    }
    JsonNode found = ask("load_table", table, arguments);
    if (found.has("rows")) {
      return new RowsTable(name + "." + table, Calls.schema(found.get("schema")), found.get("rows"));
    }
    LanceTable loaded = loaded(table, request, found);
    if (isPinned && pinned == null && !loaded.isFixed()) {
      AnalysisPins.put(calls.session(), loaded.catalogVersion());
    }
    return loaded;
  }

  LanceTable loaded(Identifier table, ReadRequest request, JsonNode found) {
    return new LanceTable(calls, table, request, found);
  }

  /** What the Python process says of the changes of a table. {@code arguments} hold its name and the bounds. */
  JsonNode findChanges(Identifier table, ObjectNode arguments) {
    Long pinned = calls.statement() == null ? AnalysisPins.find(calls.session()) : null;
    if (pinned != null) {
      arguments.put("catalog_version", pinned);
    }
    JsonNode found = ask("load_changes", table, arguments);
    if (pinned == null && calls.statement() == null) {
      AnalysisPins.put(calls.session(), found.get("catalog_version").asLong());
    }
    return found;
  }

  @Override
  public Table createTable(Identifier table, TableInfo info) {
    if (startsStream(table)) {
      return StreamTables.put(loaded(table, ReadRequest.NONE, ask("plan_table", table, described(table, info))));
    }
    ask("create_table", table, described(table, info));
    return loadTable(table);
  }

  private boolean startsStream(Identifier table) {
    boolean isStarting = StreamTables.isStarting();
    if (isStarting && calls.inTransaction().get()) {
      throw new UnsupportedOperationException(
          table + ": toTable: a stream cannot be part of a transaction; commit it or roll it back first");
    }
    return isStarting;
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) {
    ObjectNode arguments = calls.arguments(table);
    if (calls.statement() != null) {
      TableChanges.requireEvolution(table, changes);
    }
    arguments.set("changes", TableChanges.json(table, changes));
    ask("alter_table", table, arguments);
    return load(table, ReadRequest.NONE);
  }

  @Override
  public boolean dropTable(Identifier table) {
    return ask("drop_table", table, calls.arguments(table)).asBoolean();
  }

  @Override
  public boolean purgeTable(Identifier table) {
    return ask("drop_table", table, calls.arguments(table).put("purge", true)).asBoolean();
  }

  @Override
  public void renameTable(Identifier from, Identifier given) {
    Identifier to = withoutCatalog(given);
    ObjectNode arguments = calls.arguments(from);
    arguments.set("target", calls.arguments(to).get("table"));
    JsonNode exists = calls.call("table_exists", calls.arguments(to));
    ask("rename_table", exists.asBoolean() ? to : from, arguments);
  }

  /** Spark hands the new name of a table over as it is written, with the name of the catalog if that is in it. */
  private Identifier withoutCatalog(Identifier table) {
    String[] path = table.namespace();
    if (path.length < 2 || !path[0].equalsIgnoreCase(name) || namespaceExists(path)) {
      return table;
    }
    return Identifier.of(java.util.Arrays.copyOfRange(path, 1, path.length), table.name());
  }

  /** CREATE TABLE LIKE: columns and comments, and whether ids of rows are stable. */
  @Override
  public Table createTableLike(Identifier table, TableInfo info, Table source) {
    ObjectNode arguments = described(table, info);
    if (source instanceof LanceTable lance && lance.hasStableRowIds()) {
      ObjectNode properties = (ObjectNode) arguments.get("properties");
      if (!properties.has(STABLE_ROW_IDS)) {
        properties.put(STABLE_ROW_IDS, "true");
      }
    }
    ask("create_table", table, arguments);
    return loadTable(table);
  }

  // -- CREATE and REPLACE with rows

  @Override
  public StagedTable stageCreate(Identifier table, TableInfo info) {
    return staged("create", table, info);
  }

  @Override
  public StagedTable stageReplace(Identifier table, TableInfo info) {
    return staged("replace", table, info);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier table, TableInfo info) {
    return staged("create_or_replace", table, info);
  }

  private StagedTable staged(String mode, Identifier table, TableInfo info) {
    JsonNode found = ask("stage_table", table, described(table, info).put("mode", mode));
    return new StagedLanceTable(calls.in(found.get("statement").asText()), table, found);
  }

  private ObjectNode described(Identifier table, TableInfo info) {
    for (Transform transform : info.partitions()) {
      throw new UnsupportedOperationException(
          table + ": PARTITIONED BY " + transform + ": a Lance table has fragments and indices, and no partitions");
    }
    if (info.constraints().length > 0) {
      throw new UnsupportedOperationException(table + ": constraints other than NOT NULL are not supported");
    }
    ObjectNode arguments = calls.arguments(table);
    arguments.set("schema", Calls.json(info.schema()));
    arguments.set("properties", Calls.strings(new LinkedHashMap<>(info.properties())));
    return arguments;
  }

  // -- procedures

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    for (JsonNode found : calls.call("procedures", calls.arguments())) {
      boolean isSystem = procedure.namespace().length == 1 && procedure.namespace()[0].equalsIgnoreCase("system");
      if (isSystem && found.get("name").asText().equalsIgnoreCase(procedure.name())) {
        return new LanceProcedure(calls, found);
      }
    }
    throw new IllegalArgumentException(
        "no procedure " + name + "." + procedure + "; SHOW PROCEDURES IN " + name + ".system lists them");
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    List<Identifier> found = new ArrayList<>();
    if (namespace.length == 1 && namespace[0].equalsIgnoreCase("system")) {
      for (JsonNode procedure : calls.call("procedures", calls.arguments())) {
        found.add(Identifier.of(new String[] {"system"}, procedure.get("name").asText()));
      }
    }
    return found.toArray(new Identifier[0]);
  }

  private JsonNode ask(String operation, Identifier table, ObjectNode arguments) {
    try {
      return calls.call(operation, arguments);
    } catch (CatalogException error) {
      throw error.about(table);
    }
  }

  private JsonNode ask(String operation, String[] namespace, ObjectNode arguments) {
    try {
      return calls.call(operation, arguments);
    } catch (CatalogException error) {
      throw error.about(namespace);
    }
  }
}
