package frazil.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One table at one snapshot. The token is what Python knows it by. */
public class FrazilTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns, TruncatableTable {
  private static final String DEFAULT = "CURRENT_DEFAULT";
  private static final String[] STATES = {
    "snapshot", "snapshot-id", "as-of", "as-of-timestamp", "branch", "tag", "where", "columns"
  };
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
      String comment = field.getComment().isDefined() ? (String) field.getComment().get() : null;
      ColumnDefaultValue otherwise = null;
      if (field.metadata().contains(DEFAULT)) {
        // What files that lack the column hold is the business of the scan.
        otherwise = new ColumnDefaultValue(field.metadata().getString(DEFAULT), new LiteralValue(null, field.dataType()));
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

  public Map properties() {
    return new HashMap(loaded.of("properties").map());
  }

  public Set capabilities() {
    Set made = new HashSet();
    made.add(TableCapability.BATCH_READ);
    if (loaded.of("writable").flag()) {
      made.add(TableCapability.BATCH_WRITE);
      made.add(TableCapability.V1_BATCH_WRITE);
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

  /** Options that ask for another state are refused rather than passed over: SQL has words for them. */
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    for (int i = 0; i < STATES.length; i++) {
      if (options.containsKey(STATES[i])) {
        throw new IllegalArgumentException(
            "option " + STATES[i] + " is not taken here; read " + name()
                + " with option versionAsOf or timestampAsOf, or the table " + name() + ".branch_x or .tag_x");
      }
    }
    return new FrazilScanBuilder(bridge, session, this);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Writes(bridge, this, info.options().asCaseSensitiveMap());
  }

  public boolean truncateTable() {
    bridge.ask("truncate", token());
    return true;
  }

  public boolean equals(Object other) {
    return other instanceof FrazilTable && ((FrazilTable) other).loaded.equals(loaded);
  }

  public int hashCode() {
    return loaded.hashCode();
  }
}
