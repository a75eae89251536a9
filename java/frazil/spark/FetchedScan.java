package frazil.spark;

import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.read.V1Scan;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;

/** Rows that Python brings as a frame: metadata tables, change feeds, files only Arrow can read. */
record FetchedScan(Bridge bridge, Map<String, Object> request, StructType schema, long bytes) implements V1Scan {
  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return "frazil " + request.get("table") + " through Python";
  }

  @Override
  @SuppressWarnings("unchecked") // Spark asks for the relation by a type of its own choice
  public <T extends BaseRelation & TableScan> T toV1TableScan(SQLContext context) {
    return (T) new Fetched(context, this);
  }

  /** The rows, fetched when the query runs. */
  static class Fetched extends BaseRelation implements TableScan {
    private final SQLContext context;
    private final FetchedScan scan;

    Fetched(SQLContext context, FetchedScan scan) {
      this.context = context;
      this.scan = scan;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return scan.schema;
    }

    @Override
    public long sizeInBytes() {
      return scan.bytes;
    }

    @Override
    @SuppressWarnings("unchecked")
    public RDD<Row> buildScan() {
      return (RDD<Row>) scan.bridge.fetch("rows", scan.request);
    }
  }
}
