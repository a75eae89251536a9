package frazil.spark;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A Frazil catalog in Spark SQL. Every call is one question to Python. */
public class FrazilCatalog extends Namespaces implements StagingTableCatalog, ProcedureCatalog, FunctionCatalog {
  private Bridge bridge;
  private SparkSession session;
  private String name;

  /** Made by Spark from a session's configuration; `initialize` finds its Python. */
  public FrazilCatalog() {}

  public FrazilCatalog(Bridge bridge, SparkSession session, String name) {
    this.bridge = bridge;
    this.session = session;
    this.name = name;
  }

  Bridge bridge() {
    return bridge;
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    if (bridge == null) {
      session = SparkSession.active();
      bridge = Host.opened(session, name, options.asCaseSensitiveMap());
    }
  }

  public String name() {
    return name;
  }

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  static Map<String, Object> named(Identifier identifier) {
    Map<String, Object> request = named(identifier.namespace());
    request.put("name", identifier.name());
    return request;
  }

  // Tables

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return identifiers(namespace, bridge.ask("list tables", named(namespace)).of("tables"));
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, named(identifier));
  }

  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    Map<String, Object> request = named(identifier);
    request.put("version", version);
    return load(identifier, request);
  }

  public Table loadTable(Identifier identifier, long timestamp) throws NoSuchTableException {
    Map<String, Object> request = named(identifier);
    request.put("timestamp", timestamp);
    return load(identifier, request);
  }

  private Table load(Identifier identifier, Map<String, Object> request) throws NoSuchTableException {
    Json loaded = bridge.ask("load", request);
    if (loaded.has("missing")) throw new NoSuchTableException(identifier);
    return new FrazilTable(bridge, session, loaded);
  }

  private Map<String, Object> described(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, Object> request = named(identifier);
    request.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
    request.put("partitioning", Transforms.described(partitions));
    request.put("properties", properties);
    return request;
  }

  /** Deprecated in Spark, which still declares it. */
  @Override
  public Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException {
    return createTable(identifier, FrazilTable.columns(schema), partitions, properties);
  }

  @Override
  public Table createTable(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException {
    return created("create", identifier, described(identifier, columns, partitions, properties));
  }

  private FrazilTable created(String verb, Identifier identifier, Map<String, Object> request)
      throws TableAlreadyExistsException {
    try {
      return new FrazilTable(bridge, session, bridge.ask(verb, request));
    } catch (Bridge.Refused error) {
      if (error.kind.equals("AlreadyExists")) throw new TableAlreadyExistsException(identifier);
      throw error;
    }
  }

  public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    Map<String, Object> request = named(identifier);
    request.put("changes", Arrays.stream(changes).map(Alterations::described).toList());
    Json loaded = bridge.ask("alter", request);
    return new FrazilTable(bridge, session, loaded);
  }

  public boolean dropTable(Identifier identifier) {
    return bridge.ask("drop", named(identifier)).of("dropped").flag();
  }

  public boolean purgeTable(Identifier identifier) {
    Map<String, Object> request = named(identifier);
    request.put("purge", true);
    return bridge.ask("drop", request).of("dropped").flag();
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    Map<String, Object> request = named(from);
    request.put("to", named(to));
    try {
      if (bridge.ask("rename", request).has("missing")) throw new NoSuchTableException(from);
    } catch (Bridge.Refused error) {
      if (error.kind.equals("AlreadyExists")) throw new TableAlreadyExistsException(to);
      throw error;
    }
  }

  // CREATE TABLE AS and REPLACE TABLE: visible when the rows are in

  @Override
  public StagedTable stageCreate(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException {
    Map<String, Object> request = described(identifier, columns, partitions, properties);
    return new Staged(bridge, created("stage create", identifier, request));
  }

  @Override
  public StagedTable stageReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchTableException {
    Map<String, Object> request = described(identifier, columns, partitions, properties);
    Json loaded = bridge.ask("stage replace", request);
    if (loaded.has("missing")) throw new NoSuchTableException(identifier);
    return new Staged(bridge, new FrazilTable(bridge, session, loaded));
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, Object> request = described(identifier, columns, partitions, properties);
    request.put("or create", true);
    return new Staged(bridge, new FrazilTable(bridge, session, bridge.ask("stage replace", request)));
  }

  // Functions

  @Override
  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    if (!isOfFunctions(namespace)) return new Identifier[0];
    Stream<String> names = Stream.concat(Functions.NAMES.stream(), Stream.of(Windows.NAME));
    return names.map(name -> Identifier.of(namespace, name)).toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    String name = identifier.name().toLowerCase(Locale.ROOT);
    if (isOfFunctions(identifier.namespace()) && Functions.NAMES.contains(name)) return new Functions(name);
    if (isOfFunctions(identifier.namespace()) && name.equals(Windows.NAME)) return new Windows();
    throw new NoSuchFunctionException(identifier);
  }

  private static boolean isOfFunctions(String[] namespace) {
    return namespace.length == 0 || (namespace.length == 1 && namespace[0].equalsIgnoreCase("system"));
  }

  // Procedures

  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new Procedures(bridge, bridge.ask("procedure", named(identifier)));
  }

  public Identifier[] listProcedures(String[] namespace) {
    Json names = bridge.ask("list procedures", named(namespace)).of("procedures");
    return identifiers(new String[] {"system"}, names);
  }

  private static Identifier[] identifiers(String[] namespace, Json names) {
    return Arrays.stream(names.texts()).map(name -> Identifier.of(namespace, name)).toArray(Identifier[]::new);
  }
}
