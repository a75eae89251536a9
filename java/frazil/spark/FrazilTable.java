package frazil.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One table at one snapshot. The token is what Python knows it by. */
public class FrazilTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns, TruncatableTable {
  private static final String DEFAULT = "CURRENT_DEFAULT";
  private final Bridge bridge;
  private final SparkSession session;
  private final Json loaded;
  private final StructType schema;

  public FrazilTable(Bridge bridge, SparkSession session, String loaded) {
    this(bridge, session, Json.parsed(loaded));
  }

  FrazilTable(Bridge bridge, SparkSession session, Json loaded) {
    this.bridge = bridge;
    this.session = session;
    this.loaded = loaded;
    this.schema = (StructType) DataType.fromJson(loaded.of("schema").text());
  }

  Bridge bridge() {
    return bridge;
  }

  public String token() {
    return loaded.of("token").text();
  }

  public String name() {
    return loaded.of("name").text();
  }

  public StructType schema() {
    return schema;
  }

  public Column[] columns() {
    return columns(schema);
  }

  static Column[] columns(StructType schema) {
    Column[] made = new Column[schema.size()];
    for (int i = 0; i < made.length; i++) {
      StructField field = schema.fields()[i];
      String comment = field.getComment().isDefined() ? field.getComment().get() : null;
      ColumnDefaultValue otherwise = null;
      if (field.metadata().contains(DEFAULT)) {
        // What files that lack the column hold is the business of the scan.
        LiteralValue<?> unknown = new LiteralValue<>(null, field.dataType());
        otherwise = new ColumnDefaultValue(field.metadata().getString(DEFAULT), unknown);
      }
      made[i] = Column.create(field.name(), field.dataType(), field.nullable(), comment, otherwise, null);
    }
    return made;
  }

  public Transform[] partitioning() {
    Json given = loaded.of("partitioning");
    Transform[] made = new Transform[given.size()];
    for (int i = 0; i < made.length; i++) made[i] = Transforms.of(given.at(i));
    return made;
  }

  /** The columns that the table is partitioned by, in whatever way. */
  Set<String> partitionColumns() {
    Set<String> names = new HashSet<>();
    for (Transform transform : partitioning()) {
      for (NamedReference column : transform.references()) names.add(String.join(".", column.fieldNames()));
    }
    return names;
  }

  public Map<String, String> properties() {
    return new HashMap<>(loaded.of("properties").<String>map());
  }

  public Set<TableCapability> capabilities() {
    Set<TableCapability> made = new HashSet<>();
    made.add(TableCapability.BATCH_READ);
    if (loaded.of("writable").flag()) {
      made.add(TableCapability.BATCH_WRITE);
      made.add(TableCapability.V1_BATCH_WRITE);
      made.add(TableCapability.STREAMING_WRITE);
      made.add(TableCapability.TRUNCATE);
      made.add(TableCapability.OVERWRITE_BY_FILTER);
      made.add(TableCapability.OVERWRITE_DYNAMIC);
      made.add(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
      if (loaded.of("any schema").flag()) made.add(TableCapability.ACCEPT_ANY_SCHEMA);
    }
    return made;
  }

  public MetadataColumn[] metadataColumns() {
    StructType given = (StructType) DataType.fromJson(loaded.of("metadata columns").text());
    MetadataColumn[] made = new MetadataColumn[given.size()];
    for (int i = 0; i < made.length; i++) {
      made[i] = new Named(given.fields()[i].name(), given.fields()[i].dataType());
    }
    return made;
  }

  /** A column of every table that is not in its schema. */
  static class Named implements MetadataColumn {
    private final String name;
    private final DataType type;

    Named(String name, DataType type) {
      this.name = name;
      this.type = type;
    }

    public String name() {
      return name;
    }

    public DataType dataType() {
      return type;
    }
  }

  /** Options may ask for another state of the table; its columns stay those that the query was resolved with. */
  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return options.isEmpty() ? scanBuilder() : read(options).scanBuilder();
  }

  private ScanBuilder scanBuilder() {
    return new FrazilScanBuilder(bridge, session, schema, () -> this);
  }

  private FrazilTable read(CaseInsensitiveStringMap options) {
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("token", token());
    request.put("options", options.asCaseSensitiveMap());
    Map<String, Object> described = new LinkedHashMap<>(loaded.map());
    described.putAll(bridge.ask("read options", request).map());
    return new FrazilTable(bridge, session, Json.of(described));
  }

  boolean acceptsAnySchema() {
    return capabilities().contains(TableCapability.ACCEPT_ANY_SCHEMA);
  }

  /** The same table as one that holds rows to its columns. */
  FrazilTable strict() {
    Map<String, Object> described = new LinkedHashMap<>(loaded.map());
    described.put("any schema", false);
    return new FrazilTable(bridge, session, Json.of(described));
  }

  /** The same table as one whose commands Spark would rewrite itself. */
  FrazilTable rewritable() {
    return new Rewritable(bridge, session, loaded);
  }

  /** It has Spark align assignments, and is never asked for more. */
  private static class Rewritable extends FrazilTable implements SupportsRowLevelOperations {
    Rewritable(Bridge bridge, SparkSession session, Json loaded) {
      super(bridge, session, loaded);
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      throw new IllegalStateException("the changes of " + name() + " are carried out by Python");
    }
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Writes(bridge, this, info, false);
  }

  public boolean truncateTable() {
    bridge.ask("truncate", token());
    return true;
  }

  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((FrazilTable) other).loaded.equals(loaded);
  }

  public int hashCode() {
    return loaded.hashCode();
  }
}
