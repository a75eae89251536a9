package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The files that a plan of the tree leaves, as tasks for Spark's Parquet reader. */
public class FrazilScan
    implements Scan, Batch, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  /** Row groups are not divided: a task for every few bytes would find none. */
  private static final long MIN_SPLIT = 64L << 10;
  private final Bridge bridge;
  private final SparkSession session;
  private final Map<String, Object> request;
  private final StructType schema;
  private final List<Expression> filters;
  private final Grouping grouping;
  private Json plan;
  private PlanFiles files;
  /** Made once, as Spark asks for them and for their number again and again. */
  private InputPartition[] tasks;

  FrazilScan(
      Bridge bridge,
      SparkSession session,
      Map<String, Object> request,
      StructType schema,
      List<Expression> filters,
      Json plan) {
    this.bridge = bridge;
    this.session = session;
    this.request = request;
    this.schema = schema;
    this.filters = filters;
    this.plan = plan;
    this.files = PlanFiles.of(plan);
    this.grouping = grouping(plan);
  }

  /** Null where files of several partitions are read together. */
  private Grouping grouping(Json plan) {
    Grouping found = Grouping.of(plan, schema);
    if (found == null) return null;
    InputPartition[] grouped = tasks(found);
    InputPartition[] ungrouped = tasks(null);
    boolean isWorthIt = Grouping.isWorthIt(session, ungrouped.length, grouped.length);
    tasks = isWorthIt ? grouped : ungrouped;
    return isWorthIt ? found : null;
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return "frazil " + request.get("table") + " (" + files.size() + " of "
        + plan.of("of").number() + " files; " + plan.of("pruned by").text() + ") PushedFilters: " + pushed();
  }

  /** The filters that also choose row groups. */
  private List<String> pushed() {
    Json reader = plan.of("readers").at(0);
    if (!reader.of("clean").flag()) return List.of();
    StructType read = (StructType) DataType.fromJson(reader.of("schema").text());
    return pushable(read).stream().map(Expression::sql).toList();
  }

  public Batch toBatch() {
    return this;
  }

  public Statistics estimateStatistics() {
    return Estimates.of(plan, schema, () -> bridge.ask("statistics", request));
  }

  // Filters that are known only when the query runs

  public NamedReference[] filterAttributes() {
    Set<String> known = Set.of(schema.fieldNames());
    return plan.of("partition columns").items().stream()
        .map(name -> name.text())
        .filter(known::contains)
        .map(name -> new FieldReference(Scala.seq(List.of(name))))
        .toArray(NamedReference[]::new);
  }

  public void filter(Predicate[] predicates) {
    Map<String, Object> narrowed = new LinkedHashMap<>(request);
    narrowed.put("runtime", Predicates.described(predicates));
    narrowed.put("grouped by", grouping == null ? false : grouping.names());
    plan = bridge.ask("plan", narrowed);
    files = PlanFiles.of(plan);
    tasks = null;
  }

  // Tasks

  public InputPartition[] planInputPartitions() {
    if (tasks == null) tasks = tasks(grouping == null ? null : Grouping.of(plan, schema));
    return tasks;
  }

  @Override
  public Partitioning outputPartitioning() {
    if (grouping == null) return new UnknownPartitioning(planInputPartitions().length);
    return new KeyGroupedPartitioning(grouping.transforms(), grouping.keys().size());
  }

  /** Slices of files by size; with groups, none reads files of two partitions. */
  private InputPartition[] tasks(Grouping groups) {
    long openCost = Long.parseLong(session.conf().get("spark.sql.files.openCostInBytes").replaceAll("[^0-9]", ""));
    long total = 0L;
    for (int row = 0; row < files.size(); row++) total += files.bytes(row) + openCost;
    long most =
        plan.has("split")
            ? Math.max(MIN_SPLIT, plan.of("split").number())
            : SQLConf.get().filesMaxPartitionBytes();
    long split = Math.min(most, Math.max(openCost, total / session.sparkContext().defaultParallelism()));
    Map<InternalRow, Packed> open = new LinkedHashMap<>();
    Packed all = new Packed(files, null, split, openCost);
    for (int row = 0; row < files.size(); row++) {
      InternalRow key = groups == null ? null : groups.keys().get(files.group(row));
      Packed packed = groups == null ? all : open.computeIfAbsent(key, it -> new Packed(files, it, split, openCost));
      packed.add(row);
    }
    List<InputPartition> tasks = all.finished();
    for (Packed packed : open.values()) tasks.addAll(packed.finished());
    return tasks.toArray(new InputPartition[0]);
  }

  /** Slices packed into tasks, in the order in which they come. */
  private static class Packed {
    private final PlanFiles files;
    private final InternalRow key;
    private final long split;
    private final long openCost;
    private final List<InputPartition> tasks = new ArrayList<>();
    private final Slices slices;
    private int begun = 0;
    private long bytes = 0L;

    Packed(PlanFiles files, InternalRow key, long split, long openCost) {
      this.files = files;
      this.key = key;
      this.split = split;
      this.openCost = openCost;
      this.slices = new Slices(files, split);
    }

    void add(int row) {
      long size = files.bytes(row);
      for (int piece = 0; piece == 0 || piece * split < size; piece++) {
        long length = Math.min(split, size - piece * split);
        if (slices.size() > begun && bytes + length > split) close();
        slices.add(row, piece);
        bytes += length + openCost;
      }
    }

    private void close() {
      int end = slices.size();
      tasks.add(
          key == null ? new PlannedTask(slices, begun, end) : new PlannedTask.Keyed(slices, begun, end, key));
      begun = end;
      bytes = 0L;
    }

    List<InputPartition> finished() {
      if (slices.size() > begun) close();
      return tasks;
    }
  }

  // Readers

  public PartitionReaderFactory createReaderFactory() {
    List<Json> readers = plan.of("readers").items();
    List<Json> joined = plan.of("joins").items();
    StructType[] read = new StructType[readers.size()];
    FilePartitionReaderFactory[] parquet = new FilePartitionReaderFactory[readers.size()];
    boolean columnar = true;
    for (int i = 0; i < parquet.length; i++) {
      read[i] = (StructType) DataType.fromJson(readers.get(i).of("schema").text());
      parquet[i] = parquet(read[i], readers.get(i).of("clean").flag());
      // Spark's reader itself gives rows beyond spark.sql.codegen.maxFields columns, at twice the cost.
      columnar = columnar && ParquetUtils.isBatchReadSupportedForSchema(SQLConf.get(), read[i]);
    }
    Join[] joins = joined.stream().map(join -> Join.of(join, read)).toArray(Join[]::new);
    int[] positionAt =
        Stream.concat(readers.stream(), joined.stream())
            .mapToInt(reader -> (int) reader.of("position").number())
            .toArray();
    List<Json> described = plan.of("recipes").items();
    Recipe[] recipes = new Recipe[described.size()];
    for (int i = 0; i < recipes.length; i++) {
      Recipe.Kind kind = Recipe.Kind.of(described.get(i).at(0).text());
      recipes[i] = new Recipe(kind, (int) described.get(i).at(1).number(), schema.fields()[i].dataType());
    }
    return new Readers(parquet, joins, positionAt, recipes, columnar);
  }

  private FilePartitionReaderFactory parquet(StructType read, boolean clean) {
    Map<String, String> options =
        Map.of(
            "datetimeRebaseMode", "CORRECTED",
            "int96RebaseMode", "CORRECTED",
            "parquet.page.verify-checksum.enabled", "true");
    ParquetScanBuilder builder =
        new ParquetScanBuilder(session, new NoFiles(session), read, read, new CaseInsensitiveStringMap(options));
    if (clean) builder.pushFilters(Scala.seq(pushable(read)));
    return (FilePartitionReaderFactory) builder.build().createReaderFactory();
  }

  /**
   * The filters whose columns the reader knows by the names that the query uses. Statistics in Parquet files leave
   * NaN out, which Spark holds to be greater than every number: they must not decide about floating columns.
   */
  private List<Expression> pushable(StructType read) {
    Set<String> names = Set.of(read.fieldNames());
    List<Expression> pushable = new ArrayList<>();
    for (Expression filter : filters) {
      List<Attribute> columns = Scala.list(filter.references().toSeq());
      boolean isKnown =
          columns.stream().allMatch(column -> names.contains(column.name()) && !hasNaN(column.dataType().sql()));
      if (isKnown) pushable.add(filter);
    }
    return pushable;
  }

  private static boolean hasNaN(String type) {
    return type.contains("FLOAT") || type.contains("DOUBLE");
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FrazilScan scan
        && scan.request.equals(request)
        && scan.schema.equals(schema)
        && scan.plan.equals(plan);
  }

  @Override
  public int hashCode() {
    return request.hashCode();
  }
}
