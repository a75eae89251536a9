package frazil.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A table that becomes visible, or replaces another, when the statement that fills it has succeeded. */
class Staged implements StagedTable, SupportsWrite {
  private final Bridge bridge;
  private final FrazilTable table;

  Staged(Bridge bridge, SparkSession session, FrazilTable table) {
    this.bridge = bridge;
    this.table = table;
  }

  public void commitStagedChanges() {
    bridge.ask("commit staged", table.token());
  }

  public void abortStagedChanges() {
    bridge.ask("abort staged", table.token());
  }

  public String name() {
    return table.name();
  }

  public StructType schema() {
    return table.schema();
  }

  public Column[] columns() {
    return table.columns();
  }

  public Transform[] partitioning() {
    return table.partitioning();
  }

  public Map properties() {
    return table.properties();
  }

  public Set capabilities() {
    return table.capabilities();
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return table.newWriteBuilder(info);
  }
}
