package frazil.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A table that becomes visible, or replaces another, when the statement that fills it has succeeded. */
record Staged(Bridge bridge, FrazilTable table) implements StagedTable, SupportsWrite {
  @Override
  public void commitStagedChanges() {
    bridge.ask("commit staged", table.token());
  }

  @Override
  public void abortStagedChanges() {
    bridge.ask("abort staged", table.token());
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public Column[] columns() {
    return table.columns();
  }

  @Override
  public Transform[] partitioning() {
    return table.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return table.newWriteBuilder(info);
  }
}
