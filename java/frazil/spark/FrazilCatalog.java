package frazil.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A Frazil catalog in Spark SQL. Every call is one question to Python. */
public class FrazilCatalog extends Namespaces implements StagingTableCatalog, ProcedureCatalog {
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

  public Set capabilities() {
    return Collections.singleton(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  static Map named(Identifier identifier) {
    Map made = named(identifier.namespace());
    made.put("name", identifier.name());
    return made;
  }

  // Tables

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    Json found = bridge.ask("list tables", named(namespace)).of("tables");
    Identifier[] made = new Identifier[found.size()];
    for (int i = 0; i < made.length; i++) made[i] = Identifier.of(namespace, found.at(i).text());
    return made;
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, named(identifier));
  }

  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    Map request = named(identifier);
    request.put("version", version);
    return load(identifier, request);
  }

  public Table loadTable(Identifier identifier, long timestamp) throws NoSuchTableException {
    Map request = named(identifier);
    request.put("timestamp", timestamp);
    return load(identifier, request);
  }

  private Table load(Identifier identifier, Map request) throws NoSuchTableException {
    Json loaded = bridge.ask("load", request);
    if (loaded.has("missing")) throw new NoSuchTableException(identifier);
    return new FrazilTable(bridge, session, loaded);
  }

  private Map described(Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    Map request = named(identifier);
    request.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
    request.put("partitioning", Transforms.described(partitions));
    request.put("properties", properties);
    return request;
  }

  public Table createTable(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException {
    return createTable(identifier, FrazilTable.columns(schema), partitions, properties);
  }

  public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException {
    return created("create", identifier, described(identifier, columns, partitions, properties));
  }

  private FrazilTable created(String verb, Identifier identifier, Map request)
      throws TableAlreadyExistsException {
    try {
      return new FrazilTable(bridge, session, bridge.ask(verb, request));
    } catch (Bridge.Refused error) {
      if (error.kind.equals("AlreadyExists")) throw new TableAlreadyExistsException(identifier);
      throw error;
    }
  }

  public Table alterTable(Identifier identifier, TableChange[] changes) throws NoSuchTableException {
    Map request = named(identifier);
    List made = new ArrayList();
    request.put("changes", made);
    for (int i = 0; i < changes.length; i++) made.add(Alterations.described(changes[i]));
    Json loaded = bridge.ask("alter", request);
    return new FrazilTable(bridge, session, loaded);
  }

  public boolean dropTable(Identifier identifier) {
    return bridge.ask("drop", named(identifier)).of("dropped").flag();
  }

  public boolean purgeTable(Identifier identifier) {
    Map request = named(identifier);
    request.put("purge", true);
    return bridge.ask("drop", request).of("dropped").flag();
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    Map request = named(from);
    request.put("to", named(to));
    try {
      bridge.ask("rename", request);
    } catch (Bridge.Refused error) {
      if (error.kind.equals("NotFound")) throw new NoSuchTableException(from);
      if (error.kind.equals("AlreadyExists")) throw new TableAlreadyExistsException(to);
      throw error;
    }
  }

  // CREATE TABLE AS and REPLACE TABLE: visible when the rows are in

  public StagedTable stageCreate(Identifier identifier, Column[] columns, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException {
    Map request = described(identifier, columns, partitions, properties);
    return new Staged(bridge, session, created("stage create", identifier, request));
  }

  public StagedTable stageReplace(Identifier identifier, Column[] columns, Transform[] partitions, Map properties)
      throws NoSuchTableException {
    Map request = described(identifier, columns, partitions, properties);
    Json loaded = bridge.ask("stage replace", request);
    if (loaded.has("missing")) throw new NoSuchTableException(identifier);
    return new Staged(bridge, session, new FrazilTable(bridge, session, loaded));
  }

  public StagedTable stageCreateOrReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map properties) {
    Map request = described(identifier, columns, partitions, properties);
    request.put("or create", true);
    return new Staged(bridge, session, new FrazilTable(bridge, session, bridge.ask("stage replace", request)));
  }

  // Procedures

  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new Procedures(bridge, bridge.ask("procedure", named(identifier)));
  }

  public Identifier[] listProcedures(String[] namespace) {
    Json found = bridge.ask("list procedures", named(namespace)).of("procedures");
    Identifier[] made = new Identifier[found.size()];
    for (int i = 0; i < made.length; i++) made[i] = Identifier.of(new String[] {"system"}, found.at(i).text());
    return made;
  }
}
