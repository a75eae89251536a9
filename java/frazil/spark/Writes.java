package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.sources.InsertableRelation;

/**
 * The rows of CREATE TABLE AS and REPLACE TABLE AS, whose frame goes to Python, which writes them; and the batches of
 * a stream.
 */
record Writes(Bridge bridge, FrazilTable table, LogicalWriteInfo info, boolean replaces)
    implements SupportsOverwriteV2, V1Write, InsertableRelation {
  /** A table that a query fills is empty before its first rows; of a stream, every batch replaces all. */
  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    return new Writes(bridge, table, info, true);
  }

  @Override
  public Write build() {
    return this;
  }

  @Override
  public InsertableRelation toInsertableRelation() {
    return this;
  }

  @Override
  public StreamingWrite toStreaming() {
    return StreamTable.of(table, info.options(), true).sink(info, replaces);
  }

  @Override
  public void insert(Dataset<Row> rows, boolean overwrite) {
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("token", table.token());
    request.put("options", info.options().asCaseSensitiveMap());
    request.put("scanned", Scanned.by(rows));
    bridge.ask("insert", new Object[] {Json.text(request), rows});
  }
}
