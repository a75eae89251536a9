package frazil.spark;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source. Spark starts four Python processes before the first row of a Python source; in a session whose
 * Python can be asked, batches need none of them. Streams, and sessions without that Python, are left to the Python
 * source.
 */
public class Source implements TableProvider {
  private static final String CATALOGS = "spark.sql.catalog.";
  private static final Map<SparkSession, Bridge> BRIDGES = Collections.synchronizedMap(new WeakHashMap<>());
  private final PythonDataSourceV2 python = new PythonDataSourceV2();
  private Json described;

  public Source() {
    python.setShortName("frazil");
  }

  /** From now on a session's Python is asked. */
  public static void serve(SparkSession session, Bridge bridge) {
    BRIDGES.put(session, bridge);
  }

  /** The way to the session's Python; null if there is none, and no catalog whose first use would start it. */
  private static Bridge bridge(SparkSession session) {
    CatalogManager catalogs = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    Map<String, String> settings = scala.jdk.javaapi.CollectionConverters.asJava(session.conf().getAll());
    for (Map.Entry<String, String> setting : settings.entrySet()) {
      if (BRIDGES.containsKey(session)) break;
      String key = setting.getKey();
      boolean isOurs = key.startsWith(CATALOGS) && FrazilCatalog.class.getName().equals(setting.getValue());
      if (isOurs) use(catalogs, key.substring(CATALOGS.length()));
    }
    return BRIDGES.get(session);
  }

  private static void use(CatalogManager catalogs, String name) {
    try {
      catalogs.catalog(name);
    } catch (RuntimeException error) {
      // A catalog that is not configured well says so to those who use it; this source can do without.
    }
  }

  static Json asked(Bridge bridge, Map<String, String> options, StructType schema) {
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("options", options);
    if (schema != null) request.put("schema", schema.json());
    return bridge.ask("source", request);
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    Bridge bridge = bridge(SparkSession.active());
    if (bridge == null) return python.inferSchema(options);
    described = asked(bridge, options.asCaseSensitiveMap(), null);
    return (StructType) DataType.fromJson(described.of("schema").text());
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    PythonTable streams = (PythonTable) python.getTable(schema, partitioning, properties);
    SparkSession session = SparkSession.active();
    Bridge bridge = bridge(session);
    return bridge == null ? streams : new SourceTable(bridge, session, streams, properties, described);
  }

  public boolean supportsExternalMetadata() {
    return true;
  }
}
