package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** ALTER TABLE, change by change, as JSON. */
class Alterations {
  private Alterations() {}

  static Map<String, Object> described(TableChange change) {
    Map<String, Object> node = new LinkedHashMap<>();
    node.put("change", change.getClass().getSimpleName());
    if (change instanceof TableChange.ColumnChange column) node.put("column", column.fieldNames());
    if (change instanceof TableChange.SetProperty set) {
      node.put("property", set.property());
      node.put("value", set.value());
    } else if (change instanceof TableChange.RemoveProperty removed) {
      node.put("property", removed.property());
    } else if (change instanceof TableChange.AddColumn added) {
      node.put("type", schema(added, added.dataType()));
      node.put("nullable", added.isNullable());
      node.put("comment", added.comment());
      place(node, added.position());
      if (added.defaultValue() != null) node.put("default", added.defaultValue().getSql());
    } else if (change instanceof TableChange.RenameColumn renamed) {
      node.put("to", renamed.newName());
    } else if (change instanceof TableChange.UpdateColumnType typed) {
      node.put("type", schema(typed, typed.newDataType()));
    } else if (change instanceof TableChange.UpdateColumnNullability nullability) {
      node.put("nullable", nullability.nullable());
    } else if (change instanceof TableChange.UpdateColumnComment commented) {
      node.put("comment", commented.newComment());
    } else if (change instanceof TableChange.UpdateColumnPosition moved) {
      place(node, moved.position());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue updated) {
      node.put("default", updated.newDefaultValue());
    } else if (change instanceof TableChange.DeleteColumn deleted) {
      node.put("if exists", deleted.ifExists());
    }
    return node;
  }

  /** A type as the only column of a schema, which says all of it. */
  private static String schema(TableChange.ColumnChange change, DataType type) {
    String[] names = change.fieldNames();
    return new StructType().add(names[names.length - 1], type).json();
  }

  private static void place(Map<String, Object> node, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.After after) {
      node.put("after", after.column());
    } else if (position != null) {
      node.put("first", true);
    }
  }
}
