package frazil.spark;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.SetViewProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowViews;
import org.apache.spark.sql.catalyst.plans.logical.UnsetViewProperties;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.command.ViewHelper;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Statements on views of Frazil catalogs, as Spark has parsed them. Spark's versions differ in whether they carry them
 * out for catalogs other than their own, and how; Python does.
 */
class ViewStatements {
  private final CatalogManager catalogs;
  private final Map<String, Object> change = new LinkedHashMap<>();

  private ViewStatements(CatalogManager catalogs) {
    this.catalogs = catalogs;
  }

  /** The statement, or the one to run in its place. */
  static LogicalPlan handed(LogicalPlan plan, CatalogManager catalogs, ParserInterface spark) throws Exception {
    ViewStatements statement = new ViewStatements(catalogs);
    NamedPath path = statement.path(plan);
    if (path == null) return plan;
    if (plan instanceof DescribeRelation) return spark.parsePlan("DESCRIBE QUERY SELECT * FROM " + path.quoted());
    statement.change.put("path", path.parts());
    String text = Json.text(statement.change).replace("\\", "\\\\").replace("'", "\\'");
    return spark.parsePlan("CALL `" + path.catalog().name() + "`.system.change_view(change => '" + text + "')");
  }

  /** The view that a statement is about, if it is ours; notes what the statement asks for. */
  private NamedPath path(LogicalPlan plan) {
    if (plan instanceof CreateView view && view.child() instanceof UnresolvedIdentifier name) {
      change.put("do", "create");
      change.put("columns", Scala.list(view.userSpecifiedColumns()).stream().map(ViewStatements::column).toList());
      change.put("comment", orNull(view.comment()));
      change.put("properties", CollectionConverters.asJava(view.properties()));
      change.put("exists", view.replace() ? "replace" : view.allowExisting() ? "keep" : "refuse");
      query(orNull(view.originalText()));
      return NamedPath.of(catalogs, Scala.list(name.nameParts()));
    }
    if (plan instanceof AlterViewAs view && view.child() instanceof UnresolvedView name) {
      change.put("do", "alter");
      query(view.originalText());
      return NamedPath.of(catalogs, Scala.list(name.multipartIdentifier()));
    }
    if (plan instanceof DropView view && view.child() instanceof UnresolvedIdentifier name) {
      change.put("do", "drop");
      change.put("if exists", view.ifExists());
      return NamedPath.of(catalogs, Scala.list(name.nameParts()));
    }
    if (plan instanceof RenameTable view && view.isView() && view.child() instanceof UnresolvedTableOrView name) {
      change.put("do", "rename");
      NamedPath to = NamedPath.of(catalogs, Scala.list(view.newName()));
      change.put("to", to == null ? Scala.list(view.newName()) : to.parts());
      return NamedPath.of(catalogs, Scala.list(name.multipartIdentifier()));
    }
    if (plan instanceof SetViewProperties view && view.child() instanceof UnresolvedView name) {
      change.put("do", "set properties");
      change.put("set", CollectionConverters.asJava(view.properties()));
      return NamedPath.of(catalogs, Scala.list(name.multipartIdentifier()));
    }
    if (plan instanceof UnsetViewProperties view && view.child() instanceof UnresolvedView name) {
      change.put("do", "set properties");
      change.put("remove", Scala.list(view.propertyKeys()));
      return NamedPath.of(catalogs, Scala.list(name.multipartIdentifier()));
    }
    if (plan instanceof ShowViews views) {
      change.put("do", "list");
      change.put("pattern", orNull(views.pattern()));
      boolean named = views.namespace() instanceof UnresolvedNamespace;
      List<String> name = List.of();
      if (named) name = Scala.list(((UnresolvedNamespace) views.namespace()).multipartIdentifier());
      return NamedPath.namespace(catalogs, name);
    }
    if (plan instanceof DescribeRelation described) return shown(described.relation());
    if (plan instanceof ShowCreateTable created) return shown(created.child());
    return null;
  }

  private NamedPath shown(LogicalPlan relation) {
    change.put("do", "show");
    if (!(relation instanceof UnresolvedTableOrView name)) return null;
    NamedPath path = NamedPath.of(catalogs, Scala.list(name.multipartIdentifier()));
    return path == null || path.view() == null ? null : path;
  }

  /** The query of a view, with where its names start from and the settings that it is meant with. */
  private void query(String text) {
    change.put("query", text);
    change.put("catalog", catalogs.currentCatalog().name());
    change.put("namespace", catalogs.currentNamespace());
    change.put("settings", settings());
  }

  static Map<String, String> settings() {
    String prefix = CatalogTable.VIEW_SQL_CONFIG_PREFIX();
    return CollectionConverters.asJava(ViewHelper.sqlConfigsToProps(SQLConf.get(), prefix));
  }

  private static Object[] column(Tuple2<String, Option<String>> column) {
    return new Object[] {column._1(), orNull(column._2())};
  }

  private static <T> T orNull(Option<T> value) {
    return value.isDefined() ? value.get() : null;
  }
}
