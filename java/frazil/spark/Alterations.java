package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableChange;

/** ALTER TABLE, change by change, as JSON. */
class Alterations {
  private Alterations() {}

  static Map described(TableChange change) {
    Map node = new LinkedHashMap();
    node.put("change", change.getClass().getSimpleName());
    if (change instanceof TableChange.ColumnChange) {
      node.put("column", ((TableChange.ColumnChange) change).fieldNames());
    }
    if (change instanceof TableChange.SetProperty) {
      node.put("property", ((TableChange.SetProperty) change).property());
      node.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      node.put("property", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn added = (TableChange.AddColumn) change;
      node.put("type", added.dataType().json());
      node.put("nullable", added.isNullable());
      node.put("comment", added.comment());
      place(node, added.position());
      if (added.defaultValue() != null) node.put("default", added.defaultValue().getSql());
    } else if (change instanceof TableChange.RenameColumn) {
      node.put("to", ((TableChange.RenameColumn) change).newName());
    } else if (change instanceof TableChange.UpdateColumnType) {
      node.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      node.put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
    } else if (change instanceof TableChange.UpdateColumnComment) {
      node.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    } else if (change instanceof TableChange.UpdateColumnPosition) {
      place(node, ((TableChange.UpdateColumnPosition) change).position());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      node.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
    } else if (change instanceof TableChange.DeleteColumn) {
      node.put("if exists", ((TableChange.DeleteColumn) change).ifExists());
    }
    return node;
  }

  private static void place(Map node, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.After) {
      node.put("after", ((TableChange.After) position).column());
    } else if (position != null) {
      node.put("first", true);
    }
  }
}
