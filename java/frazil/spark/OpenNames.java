package frazil.spark;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.ViewResolution;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * What Spark's own rules leave open: names of views in Frazil catalogs, tables that streams read, and the columns of
 * UPDATE and MERGE on tables that accept any schema.
 */
public class OpenNames extends Rule<LogicalPlan> {
  private static final int PROPERTIES = 11;
  private static final int TEXT = 13;
  private final SparkSession session;

  public OpenNames(SparkSession session) {
    this.session = session;
  }

  private CatalogManager catalogs() {
    return session.sessionState().catalogManager();
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan target = plan instanceof InsertIntoStatement insert ? insert.table() : RowCommands.target(plan);
    while (target instanceof SubqueryAlias alias) target = alias.child();
    if (target instanceof UnresolvedRelation name) {
      NamedPath path = path(name);
      if (path != null && path.view() != null) {
        String shown = String.join(".", path.parts());
        throw new Bridge.Refused("InvalidInput", shown + " is a view; change the rows of the tables it reads");
      }
    }
    boolean assigns = plan instanceof UpdateTable || plan instanceof MergeIntoTable;
    if (assigns && target instanceof DataSourceV2Relation relation && relation.table() instanceof FrazilTable table) {
      if (table.acceptsAnySchema()) return strict(plan, relation, table);
    }
    return plan.resolveOperatorsUp(new Views()).resolveOperatorsUp(new Streams());
  }

  /** Puts what streams can read in the place of tables. */
  private static class Streams extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof StreamingRelationV2 relation && relation.table() instanceof FrazilTable;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      StreamingRelationV2 relation = (StreamingRelationV2) (LogicalPlan) node;
      return (B) StreamTable.read(relation, (FrazilTable) relation.table());
    }
  }

  // Spark resolves the columns of such a statement only if the table has a schema to hold it to.
  private static LogicalPlan strict(LogicalPlan plan, DataSourceV2Relation relation, FrazilTable table) {
    Object[] parts = Scala.list(relation.productIterator().toSeq()).toArray();
    for (int i = 0; i < parts.length; i++) if (parts[i] == table) parts[i] = table.strict();
    List<LogicalPlan> children = new ArrayList<>(Scala.list(plan.children()));
    LogicalPlan standing = relation.makeCopy(parts);
    children.set(0, children.get(0).resolveOperatorsUp(new RowCommands.Replaced(relation, standing)));
    return plan.withNewChildren(Scala.seq(children));
  }

  // Views

  /** The way to what a name means where it stands: inside a view, names start from where that was created. */
  private NamedPath path(UnresolvedRelation relation) {
    List<String> name = Scala.list(relation.multipartIdentifier());
    List<String> start = Scala.list(AnalysisContext.get().catalogAndNamespace());
    if (!start.isEmpty() && name.size() == 1) {
      name.addAll(0, start);
    } else if (!start.isEmpty() && !catalogs().isCatalogRegistered(name.get(0))) {
      name.add(0, start.get(0));
    }
    return NamedPath.of(catalogs(), name);
  }

  /** Puts views in the place of their names. */
  private class Views extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof UnresolvedRelation relation && !relation.isStreaming();
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      NamedPath path = path((UnresolvedRelation) (LogicalPlan) node);
      Json view = path == null ? null : path.view();
      return (B) (view == null ? node : built(path, view));
    }
  }

  /** A view as Spark has it of its own catalog, so that its rules for the columns and settings of views hold. */
  private LogicalPlan built(NamedPath path, Json view) {
    Map<String, String> settings = view.of("settings").map();
    Map<String, String> properties = new LinkedHashMap<>(settings.isEmpty() ? ViewStatements.settings() : settings);
    numbered(
        properties,
        CatalogTable.VIEW_CATALOG_AND_NAMESPACE(),
        CatalogTable.VIEW_CATALOG_AND_NAMESPACE_PART_PREFIX(),
        view.of("start").texts());
    numbered(
        properties,
        CatalogTable.VIEW_QUERY_OUTPUT_NUM_COLUMNS(),
        CatalogTable.VIEW_QUERY_OUTPUT_COLUMN_NAME_PREFIX(),
        view.of("query columns").texts());
    properties.put(CatalogTable.VIEW_SCHEMA_MODE(), "COMPENSATION");
    CatalogTable made = described(path, view, properties);
    LogicalPlan relation = session.sessionState().catalog().getRelation(made, CaseInsensitiveStringMap.empty());
    Analyzer analyzer = session.sessionState().analyzer();
    LogicalPlan body =
        ViewResolution.resolve(
            (View) ((SubqueryAlias) relation).child(),
            CaseInsensitiveStringMap.empty(),
            Scala.function(analyzer::org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext),
            Scala.function(
                child -> {
                  analyzer.checkAnalysis(child);
                  return BoxedUnit.UNIT;
                }));
    List<String> parts = path.parts();
    List<String> qualifier = new ArrayList<>(List.of(path.catalog().name()));
    qualifier.addAll(parts.subList(0, parts.size() - 1));
    return new SubqueryAlias(new AliasIdentifier(parts.get(parts.size() - 1), Scala.seq(qualifier)), body);
  }

  private static void numbered(Map<String, String> properties, String count, String prefix, String[] values) {
    properties.put(count, String.valueOf(values.length));
    for (int i = 0; i < values.length; i++) properties.put(prefix + i, values[i]);
  }

  /** Spark's versions give a CatalogTable more and more fields; those that are not ours take their defaults. */
  private static CatalogTable described(NamedPath path, Json view, Map<String, String> properties) {
    try {
      Object maker = CatalogTable$.MODULE$;
      Method[] methods = maker.getClass().getMethods();
      Method apply =
          Arrays.stream(methods)
              .filter(each -> each.getName().equals("apply") && each.getReturnType() == CatalogTable.class)
              .findFirst()
              .orElseThrow();
      Object[] values = new Object[apply.getParameterCount()];
      values[0] = identifier(path);
      values[1] = CatalogTableType.VIEW();
      values[2] = CatalogStorageFormat.empty();
      values[3] = DataType.fromJson(view.of("schema").text());
      for (int i = 4; i < values.length; i++) {
        values[i] = maker.getClass().getMethod("apply$default$" + (i + 1)).invoke(maker);
      }
      values[PROPERTIES] = scala.collection.immutable.Map.from(CollectionConverters.asScala(properties));
      values[TEXT] = Option.apply(view.of("text").text());
      return (CatalogTable) apply.invoke(maker, values);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this Spark has no such views", error);
    }
  }

  private static TableIdentifier identifier(NamedPath path) {
    List<String> parts = path.parts();
    int last = parts.size() - 1;
    String namespace = String.join(".", parts.subList(0, last));
    return new TableIdentifier(parts.get(last), Option.apply(namespace), Option.apply(path.catalog().name()));
  }

  /** Why the query of a frame cannot be that of a stored view; null if it can. */
  public static String problem(Dataset<?> rows, String catalog, String namespace, String name) {
    TableIdentifier own = new TableIdentifier(name, Option.apply(namespace), Option.apply(catalog));
    return problem(((org.apache.spark.sql.classic.Dataset<?>) rows).queryExecution().analyzed(), own);
  }

  private static String problem(LogicalPlan plan, TableIdentifier own) {
    String found = null;
    if (plan instanceof View view) {
      String read = view.desc().identifier().unquotedString();
      if (view.isTempView()) found = "it reads " + read + ", a view of this session alone";
      if (view.desc().identifier().equals(own)) found = "it reads the view itself";
    }
    for (LogicalPlan child : Scala.list(plan.children())) found = found == null ? problem(child, own) : found;
    for (Expression each : Scala.list(plan.expressions())) found = found == null ? problem(each, own) : found;
    return found;
  }

  private static String problem(Expression expression, TableIdentifier own) {
    String found = null;
    if (expression instanceof PlanExpression<?> query && query.plan() instanceof LogicalPlan plan) {
      found = problem(plan, own);
    }
    for (Expression each : Scala.list(expression.children())) found = found == null ? problem(each, own) : found;
    return found;
  }
}
