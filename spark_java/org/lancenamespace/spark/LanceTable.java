package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One version of a table, or the version that a transaction has made of it so far. */
class LanceTable
    implements SupportsRead, SupportsWrite, SupportsDeleteV2, SupportsRowLevelOperations, SupportsMetadataColumns {
  static final String ROW_ADDRESS = "_rowaddr";
  static final String ROW_ID = "_rowid";
  private static final Set<String> ADDED =
      Set.of(ROW_ADDRESS, ROW_ID, "_row_created_at_version", "_row_last_updated_at_version");
  private static final long MOST_ROWS_ON_DRIVER = 5_000_000;

  private final Calls calls;
  private final Identifier table;
  private final ReadRequest request;
  private final JsonNode found;
  private final StructType schema;

  LanceTable(Calls calls, Identifier table, ReadRequest request, JsonNode found) {
    this.calls = calls;
    this.table = table;
    this.request = request;
    this.found = found;
    this.schema = Calls.schema(found.get("schema"));
  }

  Calls calls() {
    return calls;
  }

  Identifier identifier() {
    return table;
  }

  /** The names of the path in the catalog, and that of the table. */
  List<String> path() {
    List<String> path = new ArrayList<>(List.of(table.namespace()));
    path.add(table.name());
    return path;
  }

  /** How the query reads the table. */
  ReadRequest request() {
    return request;
  }

  /** Whether the query names this version, so that it is read whatever catalog version other tables have. */
  boolean isFixed() {
    return found.get("fixed").asBoolean();
  }

  /** Whether a read has all rows of the version, so that its manifest states their number. */
  boolean hasAllRows() {
    return found.get("all_rows").asBoolean();
  }

  /** Whether a read has a number of rows, so that no filter may be applied before it. */
  boolean isLimited() {
    return found.get("limited").asBoolean();
  }

  /** Names the version for the Python process. */
  JsonNode ref() {
    return found.get("ref");
  }

  long catalogVersion() {
    return found.get("catalog_version").asLong();
  }

  /**
   * This table at a newer catalog version; this object if it is the same version of the table.
   *
   * <p>Throws {@link CatalogException} if the table is gone then, or has other columns.
   */
  LanceTable at(long catalogVersion) {
    if (catalogVersion == catalogVersion() || isFixed()) {
      return this;
    }
    ObjectNode arguments = calls.arguments(table).put("catalog_version", catalogVersion);
    JsonNode newer = calls.call("load_table", arguments.setAll(request.arguments()));
    if (version(newer.get("ref")).equals(version(ref()))) {
      return this;
    }
    LanceTable pinned = new LanceTable(calls, table, request, newer);
    if (!pinned.schema.equals(schema)) {
      throw new CatalogException("InvalidStatement", table + ": its columns have changed since this DataFrame was made"
          + " at catalog version " + catalogVersion() + ", and the query reads catalog version " + catalogVersion);
    }
    return pinned;
  }

  private static JsonNode version(JsonNode ref) {
    ObjectNode version = ref.deepCopy();
    version.remove("at");
    return version;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LanceTable same && same.calls.session().equals(calls.session()) && Objects.equals(same.calls.statement(), calls.statement())
        && version(same.ref()).equals(version(ref()));
  }

  @Override
  public int hashCode() {
    return version(ref()).hashCode();
  }

  boolean hasStableRowIds() {
    return found.get("stable_row_ids").asBoolean();
  }

  @Override
  public String name() {
    return table.toString();
  }

  /** For errors of Spark, some of which show a table so. */
  @Override
  public String toString() {
    return name();
  }

  /** Of Spark 4.2 and later: distinguishes a table from one that had its name before; null if it is not made yet. */
  public String id() {
    return ref().get("uri").textValue();
  }

  StructType type() {
    return schema;
  }

  /** Names of the columns that are stored with the type that Spark shows, and with no other. */
  Set<String> exactColumns() {
    Set<String> names = new HashSet<>();
    found.get("exact").forEach(name -> names.add(name.asText()));
    return names;
  }

  /** The columns that are stored. A read with options may have others: ids of rows, and scores of a search. */
  StructType storedType() {
    if (!request.arguments().has("options")) {
      return schema;
    }
    StructType stored = new StructType();
    for (StructField field : schema.fields()) {
      stored = ADDED.contains(field.name()) ? stored : stored.add(field);
    }
    return stored;
  }

  @Override
  public Column[] columns() {
    return RowsTable.columns(schema);
  }

  @Override
  public Map<String, String> properties() {
    return Calls.map(found.get("properties"));
  }

  @Override
  public Set<TableCapability> capabilities() {
    if (found.get("read_only").asBoolean()) {
      return EnumSet.of(TableCapability.BATCH_READ);
    }
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC,
        TableCapability.AUTOMATIC_SCHEMA_EVOLUTION, TableCapability.STREAMING_WRITE);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[] {
        new RowColumn(ROW_ADDRESS, "fragment and offset of the row"),
        new RowColumn(ROW_ID, "id of the row, which is stable if the table has stable row ids")};
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    Map<String, String> unread = OptionsOfNames.given(options);
    if (!unread.isEmpty()) {
      throw new IllegalArgumentException(table + ": options " + String.join(", ", unread.keySet())
          + ": expected spark.sql.extensions with " + LanceExtensions.class.getName()
          + ", and no TIMESTAMP AS OF beside options: they have a timestamp");
    }
    return new LanceScanBuilder(this);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LanceWriteBuilder(this, info);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    requireWritable();
    return () -> new RowChanges(this, info.command());
  }

  /** A filter on a large table is evaluated by the tasks of a row-level DELETE, not by the driver. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    return found.get("row_count").asLong() <= MOST_ROWS_ON_DRIVER && FilterSql.all(this, predicates).isPresent();
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    requireWritable();
    Optional<String> where = FilterSql.all(this, predicates);
    delete(where.orElseThrow(() -> new IllegalArgumentException(table + ": cannot delete by this filter")));
  }

  @Override
  public boolean truncateTable() {
    requireWritable();
    delete("true");
    return true;
  }

  private void delete(String where) {
    ObjectNode arguments = calls.arguments(table).put("where", where);
    arguments.set("ref", ref());
    calls.call("delete", arguments);
  }

  private void requireWritable() {
    JsonNode options = request.arguments().get("options");
    if (options != null) {
      throw new UnsupportedOperationException(
          table + ": options " + options + ": expected none where rows of a table are changed");
    }
    if (found.get("read_only").asBoolean()) {
      throw new UnsupportedOperationException(table + ": an earlier version of a table cannot be changed");
    }
  }

  /** A metadata column of 64 bits. */
  private record RowColumn(String name, String comment) implements MetadataColumn {
    @Override
    public DataType dataType() {
      return DataTypes.LongType;
    }

    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
