package frazil.spark;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as the data source gives it: batches are ours, streams those of the Python source. */
class SourceTable implements SupportsRead, SupportsWrite {
  private static final String STREAMING = "org.apache.spark.sql.execution.streaming.";
  private final Bridge bridge;
  private final SparkSession session;
  private final PythonTable streams;
  private final Map<String, String> options;
  private Json described;

  SourceTable(
      Bridge bridge, SparkSession session, PythonTable streams, Map<String, String> options, Json described) {
    this.bridge = bridge;
    this.session = session;
    this.streams = streams;
    this.options = options;
    this.described = described;
  }

  public String name() {
    return streams.name();
  }

  public StructType schema() {
    return streams.schema();
  }

  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> capabilities = new HashSet<>(streams.capabilities());
    capabilities.add(TableCapability.V1_BATCH_WRITE);
    capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
    return capabilities;
  }

  /** What is read, pinned to its snapshot by the first who asks. */
  private synchronized FrazilTable rows() {
    if (described == null) described = Source.asked(bridge, options, schema());
    if (described.has("refused")) throw new IllegalArgumentException(described.of("refused").text());
    return new FrazilTable(bridge, session, described);
  }

  /** What Python knows its rows by; null where they are changes, which only streams read. */
  synchronized String token() {
    if (described == null) described = Source.asked(bridge, options, schema());
    return described.has("refused") ? null : described.of("token").text();
  }

  /** Spark does not tell what a scan is for, and prunes columns of streams, too: who asks for it tells. */
  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    String caller = StackWalker.getInstance().walk(frames -> frames.skip(1).findFirst().get().getClassName());
    if (caller.startsWith(STREAMING)) return streams.newScanBuilder(options);
    return new FrazilScanBuilder(bridge, session, schema(), this::rows);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Written(this, info);
  }

  /** Rows that are added to the table, or take the place of all that it has. */
  static class Written implements SupportsTruncate, V1Write, InsertableRelation {
    private final SourceTable table;
    private final LogicalWriteInfo info;
    private boolean overwrite;

    Written(SourceTable table, LogicalWriteInfo info) {
      this.table = table;
      this.info = info;
    }

    public WriteBuilder truncate() {
      overwrite = true;
      return this;
    }

    public Write build() {
      return this;
    }

    public InsertableRelation toInsertableRelation() {
      return this;
    }

    @Override
    public void insert(Dataset<Row> rows, boolean replaces) {
      Map<String, Object> request = new LinkedHashMap<>();
      request.put("options", table.options);
      request.put("overwrite", overwrite);
      request.put("scanned", Scanned.by(rows));
      table.bridge.ask("source insert", new Object[] {Json.text(request), rows});
    }

    public StreamingWrite toStreaming() {
      WriteBuilder made = table.streams.newWriteBuilder(info);
      return (overwrite ? ((SupportsTruncate) made).truncate() : made).build().toStreaming();
    }
  }
}
