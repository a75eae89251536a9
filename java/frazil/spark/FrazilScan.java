package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.OptionalLong;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/** The files that a plan of the tree leaves, as tasks for Spark's Parquet reader. */
public class FrazilScan implements Scan, Batch, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  /** Row groups are not divided: a task for every few bytes would find none. */
  private static final long SMALLEST = 64L << 10;
  private final Bridge bridge;
  private final SparkSession session;
  private final Map request;
  private final StructType schema;
  private final Seq filters;
  private Json plan;

  FrazilScan(Bridge bridge, SparkSession session, Map request, StructType schema, Seq filters, Json plan) {
    this.bridge = bridge;
    this.session = session;
    this.request = request;
    this.schema = schema;
    this.filters = filters;
    this.plan = plan;
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return "frazil " + request.get("table") + " (" + plan.of("files").size() + " of "
        + plan.of("of").number() + " files; " + plan.of("pruned by").text() + ") PushedFilters: " + pushed();
  }

  /** The filters that also choose row groups. */
  private List pushed() {
    List made = new ArrayList();
    Json reader = plan.of("readers").at(0);
    if (reader.of("clean").flag()) {
      StructType read = (StructType) DataType.fromJson(reader.of("schema").text());
      scala.collection.Iterator each = pushable(read).iterator();
      while (each.hasNext()) made.add(((Expression) each.next()).sql());
    }
    return made;
  }

  public Batch toBatch() {
    return this;
  }

  public Statistics estimateStatistics() {
    final long rows = plan.of("rows").number();
    final long bytes = plan.of("bytes").number();
    return new Counted(bytes, rows);
  }

  /** What a plan knows of the size of its result. */
  static class Counted implements Statistics {
    private final long bytes;
    private final long rows;

    Counted(long bytes, long rows) {
      this.bytes = bytes;
      this.rows = rows;
    }

    public OptionalLong sizeInBytes() {
      return OptionalLong.of(bytes);
    }

    public OptionalLong numRows() {
      return OptionalLong.of(rows);
    }
  }

  // Filters that are known only when the query runs

  public NamedReference[] filterAttributes() {
    Json names = plan.of("partition columns");
    List found = new ArrayList();
    for (int i = 0; i < names.size(); i++) {
      String name = names.at(i).text();
      if (Arrays.asList(schema.fieldNames()).contains(name)) {
        found.add(org.apache.spark.sql.connector.expressions.FieldReference.apply(
            (Seq) scala.jdk.javaapi.CollectionConverters.asScala(java.util.Collections.singletonList(name)).toSeq()));
      }
    }
    return (NamedReference[]) found.toArray(new NamedReference[0]);
  }

  public void filter(Predicate[] predicates) {
    Map narrowed = new LinkedHashMap(request);
    narrowed.put("runtime", Predicates.described(predicates));
    plan = bridge.ask("plan", narrowed);
  }

  // Tasks

  public InputPartition[] planInputPartitions() {
    Json files = plan.of("files");
    long total = 0L;
    long openCost = Long.parseLong(session.conf().get("spark.sql.files.openCostInBytes").replaceAll("[^0-9]", ""));
    List slices = new ArrayList();
    for (int i = 0; i < files.size(); i++) total += files.at(i).at(1).number() + openCost;
    long most =
        plan.has("split")
            ? Math.max(SMALLEST, plan.of("split").number())
            : org.apache.spark.sql.internal.SQLConf.get().filesMaxPartitionBytes();
    long each = Math.min(most, Math.max(openCost, total / session.sparkContext().defaultParallelism()));
    for (int i = 0; i < files.size(); i++) {
      Slice whole = slice(files.at(i));
      for (long from = 0L; from < whole.size || from == 0L; from += each) {
        slices.add(whole.part(from, Math.min(each, whole.size - from)));
      }
    }
    return packed(slices, each, openCost);
  }

  private static Slice slice(Json file) {
    Slice made = new Slice();
    made.path = file.at(0).text();
    made.size = file.at(1).number();
    made.reader = (int) file.at(2).number();
    made.base = file.at(3).number();
    made.firstRowId = file.at(4).number();
    made.sequence = file.at(5).number();
    made.spec = (int) file.at(6).number();
    made.name = file.at(8).text();
    Json deleted = file.at(7);
    made.deleted = deleted.isNull() ? null : Base64.getDecoder().decode(deleted.text());
    return made;
  }

  private static InputPartition[] packed(List slices, long each, long openCost) {
    List tasks = new ArrayList();
    List held = new ArrayList();
    long bytes = 0L;
    for (int i = 0; i < slices.size(); i++) {
      Slice slice = (Slice) slices.get(i);
      if (!held.isEmpty() && bytes + slice.length > each) {
        tasks.add(new Readers.Task((Slice[]) held.toArray(new Slice[0])));
        held.clear();
        bytes = 0L;
      }
      held.add(slice);
      bytes += slice.length + openCost;
    }
    if (!held.isEmpty()) tasks.add(new Readers.Task((Slice[]) held.toArray(new Slice[0])));
    return (InputPartition[]) tasks.toArray(new InputPartition[0]);
  }

  // Readers

  public PartitionReaderFactory createReaderFactory() {
    Json readers = plan.of("readers");
    FilePartitionReaderFactory[] parquet = new FilePartitionReaderFactory[readers.size()];
    int[] positionAt = new int[readers.size()];
    boolean columnar = true;
    for (int i = 0; i < parquet.length; i++) {
      StructType read = (StructType) DataType.fromJson(readers.at(i).of("schema").text());
      positionAt[i] = (int) readers.at(i).of("position").number();
      parquet[i] = parquet(read, readers.at(i).of("clean").flag());
      columnar = columnar && parquet[i].supportColumnarReads(null);
    }
    Json given = plan.of("recipes");
    Recipe[] recipes = new Recipe[given.size()];
    for (int i = 0; i < recipes.length; i++) {
      recipes[i] = new Recipe(given.at(i).at(0).text(), (int) given.at(i).at(1).number(), schema.fields()[i].dataType());
    }
    return new Readers(parquet, positionAt, recipes, columnar);
  }

  private FilePartitionReaderFactory parquet(StructType read, boolean clean) {
    Map options = new LinkedHashMap();
    options.put("datetimeRebaseMode", "CORRECTED");
    options.put("int96RebaseMode", "CORRECTED");
    options.put("parquet.page.verify-checksum.enabled", "true");
    ParquetScanBuilder builder =
        new ParquetScanBuilder(session, new NoFiles(session), read, read, new CaseInsensitiveStringMap(options));
    if (clean) builder.pushFilters(pushable(read));
    return (FilePartitionReaderFactory) builder.build().createReaderFactory();
  }

  /**
   * The filters whose columns the reader knows by the names that the query uses. Statistics in Parquet files leave
   * NaN out, which Spark holds to be greater than every number: they must not decide about floating columns.
   */
  private Seq pushable(StructType read) {
    List names = Arrays.asList(read.fieldNames());
    List found = new ArrayList();
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) {
      Expression filter = (Expression) each.next();
      boolean known = true;
      scala.collection.Iterator columns = filter.references().iterator();
      while (columns.hasNext()) {
        Attribute column = (Attribute) columns.next();
        known = known && names.contains(column.name()) && !hasNaN(column.dataType().sql());
      }
      if (known) found.add(filter);
    }
    return scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq();
  }

  private static boolean hasNaN(String type) {
    return type.contains("FLOAT") || type.contains("DOUBLE");
  }

  public boolean equals(Object other) {
    return other instanceof FrazilScan
        && ((FrazilScan) other).request.equals(request)
        && ((FrazilScan) other).schema.equals(schema)
        && ((FrazilScan) other).plan.equals(plan);
  }

  public int hashCode() {
    return request.hashCode();
  }
}
