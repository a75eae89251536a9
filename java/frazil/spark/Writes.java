package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.InsertableRelation;

/** INSERT, INSERT OVERWRITE and `writeTo`: the frame goes to Python, which writes and commits it. */
class Writes implements SupportsOverwriteV2, SupportsDynamicOverwrite, SupportsTruncate {
  private final Bridge bridge;
  private final FrazilTable table;
  private final Map request = new LinkedHashMap();

  Writes(Bridge bridge, FrazilTable table, Map options) {
    this.bridge = bridge;
    this.table = table;
    request.put("token", table.token());
    request.put("mode", "append");
    request.put("options", options);
  }

  public WriteBuilder truncate() {
    request.put("mode", "overwrite");
    return this;
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    request.put("mode", "overwrite");
    request.put("filters", Predicates.described(predicates));
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    request.put("mode", "overwrite partitions");
    return this;
  }

  public Write build() {
    return new Inserted(bridge, request);
  }

  /** The write that Spark hands the rows to. */
  static class Inserted implements V1Write, InsertableRelation {
    private final Bridge bridge;
    private final Map request;

    Inserted(Bridge bridge, Map request) {
      this.bridge = bridge;
      this.request = request;
    }

    public InsertableRelation toInsertableRelation() {
      return this;
    }

    public void insert(Dataset rows, boolean overwrite) {
      bridge.ask("insert", new Object[] {Json.text(request), rows});
    }
  }
}
