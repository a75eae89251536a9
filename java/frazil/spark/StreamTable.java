package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table of a catalog as streams read and write it: through the Python data source, which is told the catalog, the
 * table and the branch. What it is told stays out of Spark's plans, as it may hold credentials.
 */
record StreamTable(String name, StructType schema, CaseInsensitiveStringMap options, PythonTable source)
    implements SupportsRead {
  static StreamTable of(FrazilTable table, CaseInsensitiveStringMap options, boolean writes) {
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("token", table.token());
    request.put("options", options.asCaseSensitiveMap());
    request.put("writes", writes);
    Json described = table.bridge().ask("stream", request);
    StructType schema = (StructType) DataType.fromJson(described.of("schema").text());
    PythonDataSourceV2 python = new PythonDataSourceV2();
    python.setShortName("frazil");
    PythonTable source = (PythonTable) python.getTable(schema, new Transform[0], Map.of());
    Map<String, String> told = described.of("options").map();
    return new StreamTable(table.name(), schema, new CaseInsensitiveStringMap(told), source);
  }

  /** A stream of a table that a query names; columns that the table has keep their identity. */
  static LogicalPlan read(StreamingRelationV2 relation, FrazilTable named) {
    StreamTable table = of(named, relation.extraOptions(), false);
    Map<String, AttributeReference> known = new LinkedHashMap<>();
    for (AttributeReference column : Scala.list(relation.output())) known.put(column.name(), column);
    List<AttributeReference> columns = new ArrayList<>();
    for (AttributeReference column : Scala.list(DataTypeUtils.toAttributes(table.schema))) {
      columns.add(known.getOrDefault(column.name(), column));
    }
    Object[] parts = Scala.list(relation.productIterator().toSeq()).toArray();
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] == named) parts[i] = table;
      if (parts[i] == relation.output()) parts[i] = Scala.seq(columns);
    }
    return relation.makeCopy(parts);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.MICRO_BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap asked) {
    return source.newScanBuilder(options);
  }

  /** The sink of a stream; `replaces` where every batch takes the place of all rows. */
  StreamingWrite sink(LogicalWriteInfo info, boolean replaces) {
    WriteBuilder made = source.newWriteBuilder(new Told(info, options));
    return (replaces ? ((SupportsTruncate) made).truncate() : made).build().toStreaming();
  }

  /** A write of which more is known than its user said. */
  record Told(LogicalWriteInfo info, CaseInsensitiveStringMap options) implements LogicalWriteInfo {
    @Override
    public String queryId() {
      return info.queryId();
    }

    @Override
    public StructType schema() {
      return info.schema();
    }
  }
}
