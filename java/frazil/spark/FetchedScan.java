package frazil.spark;

import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.read.V1Scan;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;

/** Rows that Python brings as a frame: metadata tables, change feeds, files only Arrow can read. */
class FetchedScan implements V1Scan {
  private final Bridge bridge;
  private final Map request;
  private final StructType schema;
  private final Json plan;

  FetchedScan(Bridge bridge, Map request, StructType schema, Json plan) {
    this.bridge = bridge;
    this.request = request;
    this.schema = schema;
    this.plan = plan;
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return "frazil " + request.get("table") + " through Python";
  }

  public BaseRelation toV1TableScan(SQLContext context) {
    return new Fetched(context, bridge, request, schema, plan.of("bytes").number());
  }

  /** The rows, fetched when the query runs. */
  static class Fetched extends BaseRelation implements TableScan {
    private final SQLContext context;
    private final Bridge bridge;
    private final Map request;
    private final StructType schema;
    private final long bytes;

    Fetched(SQLContext context, Bridge bridge, Map request, StructType schema, long bytes) {
      this.context = context;
      this.bridge = bridge;
      this.request = request;
      this.schema = schema;
      this.bytes = bytes;
    }

    public SQLContext sqlContext() {
      return context;
    }

    public StructType schema() {
      return schema;
    }

    public long sizeInBytes() {
      return bytes;
    }

    public RDD buildScan() {
      return (RDD) bridge.fetch("rows", request);
    }
  }
}
