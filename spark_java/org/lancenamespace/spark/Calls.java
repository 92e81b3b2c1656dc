package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Calls of one catalog, and of one statement of it, to the Python process.
 *
 * <p>{@code session} names the catalog of one Spark session: a transaction of several statements belongs to it.
 * {@code statement} names the statement whose snapshot the calls read and whose changes they add to; null for calls
 * that stand alone. {@code changed} are the tables that the open transaction of the session has changed.
 */
record Calls(String catalog, Settings settings, String session, String statement, AtomicBoolean inTransaction,
    Set<Identifier> changed) {

  /** Operations that only read, and so are sent again to another process if theirs has ended. */
  private static final Set<String> READS = Set.of("list_namespaces", "namespace_exists", "describe_namespace",
      "list_tables", "table_exists", "load_table", "load_changes", "plan_table", "procedures");

  /** Operations that change nothing in the catalog, and are not sent again. */
  private static final Set<String> PLANS = Set.of("begin_statement", "abort_statement", "plan_scan", "plan_changes", "plan_write",
      "count_rows", "stage_table", "discard_rows");

  /** Operations that change the rows of a table. */
  private static final Set<String> CHANGES =
      Set.of("stage_rows", "delete", "create_table", "stage_table", "alter_table");

  static Calls of(String catalog, Settings settings) {
    return new Calls(catalog, settings, UUID.randomUUID().toString(), null, new AtomicBoolean(),
        ConcurrentHashMap.newKeySet());
  }

  Calls in(String statement) {
    return new Calls(catalog, settings, session, statement, inTransaction, changed);
  }

  ObjectNode arguments() {
    ObjectNode arguments = PythonProcess.JSON.createObjectNode();
    return arguments.put("session", session).put("statement", statement);
  }

  ObjectNode arguments(Identifier table) {
    ObjectNode arguments = arguments();
    ArrayNode path = arguments.putArray("table");
    for (String name : table.namespace()) {
      path.add(name);
    }
    path.add(table.name());
    return arguments;
  }

  ObjectNode arguments(String[] namespace) {
    ObjectNode arguments = arguments();
    arguments.set("namespace", strings(namespace));
    return arguments;
  }

  /** Call the Python process. If that ends the transaction, cached rows of what it has changed are refreshed. */
  JsonNode call(String operation, ObjectNode arguments) {
    boolean wasInTransaction = inTransaction.get();
    if (wasInTransaction && CHANGES.contains(operation)) {
      changed.add(identifier(arguments.get("table")));
    }
    try {
      return send(operation, arguments);
    } finally {
      if (wasInTransaction && !inTransaction.get()) {
        List<Identifier> tables = List.copyOf(changed);
        changed.clear();
        CachedRows.refresh(catalog, tables);
      }
    }
  }

  /** Refresh cached rows of tables that an operation has changed, and again at the end of the transaction. */
  void refresh(JsonNode tables) {
    List<Identifier> found = new ArrayList<>();
    tables.forEach(table -> found.add(identifier(table)));
    if (inTransaction.get()) {
      changed.addAll(found);
    }
    CachedRows.refresh(catalog, found);
  }

  private static Identifier identifier(JsonNode path) {
    List<String> names = new ArrayList<>();
    path.forEach(name -> names.add(name.asText()));
    String name = names.remove(names.size() - 1);
    return Identifier.of(names.toArray(new String[0]), name);
  }

  private JsonNode send(String operation, ObjectNode arguments) {
    arguments.put("in_transaction", inTransaction.get());
    JsonNode answer;
    try {
      answer = PythonProcess.of(settings).call(operation, arguments);
    } catch (PythonProcess.Ended error) {
      if (!READS.contains(operation)) {
        throw lost(operation, error);
      }
      answer = PythonProcess.of(settings).call(operation, arguments);
    }
    inTransaction.set(answer.get("in_transaction").asBoolean());
    JsonNode error = answer.get("error");
    if (error != null) {
      throw new CatalogException(error.get("kind").asText(), error.get("message").asText());
    }
    return answer.get("result");
  }

  private CatalogException lost(String operation, PythonProcess.Ended error) {
    boolean isProcedure = operation.equals("call_procedure");
    if (!isProcedure && inTransaction.getAndSet(false)) {
      return new CatalogException("TransactionLost", operation + ": " + error.getMessage()
          + ", and with it the transaction of this session: nothing of it was committed; begin it again");
    }
    boolean isPlanned = statement != null && !operation.equals("commit_statement");
    if (isPlanned || PLANS.contains(operation)) {
      return new CatalogException("ProcessEnded", operation + ": " + error.getMessage() + "; nothing was committed");
    }
    return new CatalogException("CommitUnknown", operation + ": " + error.getMessage() + "; the outcome is unknown");
  }

  static ArrayNode strings(String[] values) {
    ArrayNode array = PythonProcess.JSON.createArrayNode();
    for (String value : values) {
      array.add(value);
    }
    return array;
  }

  static ObjectNode strings(Map<String, String> values) {
    ObjectNode object = PythonProcess.JSON.createObjectNode();
    values.forEach(object::put);
    return object;
  }

  static Map<String, String> map(JsonNode object) {
    Map<String, String> values = new LinkedHashMap<>();
    object.properties().forEach(entry -> values.put(entry.getKey(), entry.getValue().asText()));
    return values;
  }

  static StructType schema(JsonNode json) {
    return (StructType) DataType.fromJson(json.toString());
  }

  static JsonNode json(StructType schema) {
    try {
      return PythonProcess.JSON.readTree(schema.json());
    } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
      throw new IllegalStateException(error);
    }
  }
}
