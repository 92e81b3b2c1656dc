package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Changes of ALTER TABLE as JSON. Those that a Lance table cannot have are refused by name. */
final class TableChanges {
  private TableChanges() {}

  static ArrayNode json(Identifier table, TableChange... changes) {
    ArrayNode list = PythonProcess.JSON.createArrayNode();
    requireNoReplacement(table, changes);
    for (TableChange change : changes) {
      list.add(json(table, change));
    }
    return list;
  }

  /** Whether a change is a nullable column at the end of a table, which WITH SCHEMA EVOLUTION adds. */
  static boolean isNewColumn(TableChange change) {
    return change instanceof TableChange.AddColumn add && add.fieldNames().length == 1 && add.isNullable();
  }

  /** Refuse what WITH SCHEMA EVOLUTION cannot do beside the rows of a statement: anything but new columns at the end. */
  static void requireEvolution(Identifier table, TableChange... changes) {
    for (TableChange change : changes) {
      if (!isNewColumn(change)) {
        String column = change instanceof TableChange.ColumnChange of ? String.join(".", of.fieldNames()) : "?";
        throw new UnsupportedOperationException(table + ": schema evolution of column " + column
            + ": expected a new column of the table, found " + change.getClass().getSimpleName()
            + "; ALTER TABLE changes the types of columns");
      }
    }
  }

  /** Spark makes one statement of changes that drop columns and add others: REPLACE COLUMNS, which loses all values. */
  private static void requireNoReplacement(Identifier table, TableChange... changes) {
    boolean drops = Arrays.stream(changes).anyMatch(change -> change instanceof TableChange.DeleteColumn);
    if (drops && Arrays.stream(changes).anyMatch(change -> change instanceof TableChange.AddColumn)) {
      throw new UnsupportedOperationException(table + ": REPLACE COLUMNS would drop the values of all columns: expected "
          + "ADD COLUMNS, DROP COLUMNS, RENAME COLUMN or ALTER COLUMN, or CREATE OR REPLACE TABLE");
    }
  }

  private static ObjectNode json(Identifier table, TableChange change) {
    ObjectNode json = PythonProcess.JSON.createObjectNode();
    if (change instanceof TableChange.SetProperty set) {
      return json.put("change", "set_property").put("property", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty remove) {
      return json.put("change", "remove_property").put("property", remove.property());
    }
    if (change instanceof TableChange.AddColumn add) {
      if (add.position() != null) {
        throw new UnsupportedOperationException(table + ": ADD COLUMN with FIRST or AFTER: columns are added at the end");
      }
      if (add.defaultValue() != null) {
        throw new UnsupportedOperationException(table + ": ADD COLUMN with DEFAULT is not supported");
      }
      StructType schema = new StructType(new StructField[] {
          new StructField(leaf(add.fieldNames()), add.dataType(), add.isNullable(),
              org.apache.spark.sql.types.Metadata.empty())});
      json.put("change", "add_column").put("comment", add.comment()).set("schema", Calls.json(schema));
      return json.set("column", Calls.strings(add.fieldNames()));
    }
    if (change instanceof TableChange.RenameColumn rename) {
      json.put("change", "rename_column").put("name", rename.newName());
      return json.set("column", Calls.strings(rename.fieldNames()));
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      json.put("change", "drop_column").put("if_exists", Boolean.TRUE.equals(delete.ifExists()));
      return json.set("column", Calls.strings(delete.fieldNames()));
    }
    if (change instanceof TableChange.UpdateColumnComment comment) {
      json.put("change", "comment_column").put("comment", comment.newComment());
      return json.set("column", Calls.strings(comment.fieldNames()));
    }
    if (change instanceof TableChange.UpdateColumnNullability nullability) {
      json.put("change", "nullability").put("nullable", nullability.nullable());
      return json.set("column", Calls.strings(nullability.fieldNames()));
    }
    if (change instanceof TableChange.UpdateColumnType type) {
      StructType schema = new StructType(new StructField[] {
          new StructField(leaf(type.fieldNames()), type.newDataType(), true,
              org.apache.spark.sql.types.Metadata.empty())});
      json.put("change", "cast_column").set("schema", Calls.json(schema));
      return json.set("column", Calls.strings(type.fieldNames()));
    }
    throw new UnsupportedOperationException(
        table + ": ALTER TABLE with " + change.getClass().getSimpleName() + " is not supported");
  }

  private static String leaf(String[] names) {
    return names[names.length - 1];
  }
}
