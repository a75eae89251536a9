package frazil.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Frames that Python asks for, one call each. */
public class Frames {
  private static final String GIVEN = "__frazil_given_";
  private final SparkSession session;

  public Frames(SparkSession session) {
    this.session = session;
  }

  /** The rows of a table that no statement names, with these metadata columns. */
  public Dataset rows(Bridge bridge, String described, String metadataColumns) {
    FrazilTable table = new FrazilTable(bridge, session, described);
    DataSourceV2Relation relation = DataSourceV2Relation.create(table, Option.empty(), Option.empty());
    Dataset made = Dataset$.MODULE$.ofRows(session, relation);
    Json names = Json.parsed(metadataColumns);
    if (names.size() == 0) return made;
    Column[] columns = new Column[names.size() + 1];
    columns[0] = made.col("*");
    for (int i = 0; i < names.size(); i++) columns[i + 1] = made.metadataColumn(names.at(i).text());
    return made.select(columns);
  }

  /**
   * One select from texts: a column in addition, a filter, and what is selected. In the texts a name with a number
   * stands for an expression that is given apart, as a text of its own or as one of the columns.
   */
  public Dataset selected(Dataset rows, String asked, List columns) throws ParseException {
    Json wanted = Json.parsed(asked);
    Json given = wanted.of("given");
    Map known = new HashMap();
    for (int i = 0; i < given.size(); i++) {
      Object each = given.at(i).value();
      known.put(
          GIVEN + i,
          each instanceof String
              ? parsed((String) each)
              : session.expression((Column) columns.get(((Number) each).intValue())));
    }
    Given filled = new Given(known);
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    if (!wanted.of("with").isNull()) {
      List all = RowChanges.list(plan.output());
      all.add(named(wanted.of("with"), filled));
      plan = new Project(RowChanges.seq(all), plan);
    }
    if (!wanted.of("where").isNull()) {
      plan = new Filter(parsed(wanted.of("where").text()).transform(filled), plan);
    }
    Json select = wanted.of("select");
    List made = new ArrayList();
    for (int i = 0; i < select.size(); i++) made.add(named(select.at(i), filled));
    return Dataset$.MODULE$.ofRows(session, new Project(RowChanges.seq(made), plan));
  }

  private Expression parsed(String text) throws ParseException {
    return session.sessionState().sqlParser().parseExpression(text);
  }

  private Alias named(Json said, Given filled) throws ParseException {
    return new Alias(
        (Expression) parsed(said.at(1).text()).transform(filled), said.at(0).text(), NamedExpression.newExprId(),
        (Seq) (Object) Nil$.MODULE$, Option.empty(), (Seq) (Object) Nil$.MODULE$);
  }

  /** Puts the expressions that are given in their places. */
  static class Given extends AbstractPartialFunction {
    private final Map known;

    Given(Map known) {
      this.known = known;
    }

    public boolean isDefinedAt(Object node) {
      return node instanceof UnresolvedAttribute && known.containsKey(((UnresolvedAttribute) node).name());
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? known.get(((UnresolvedAttribute) node).name()) : otherwise.apply(node);
    }
  }

  /** The filters over a scan as JSON; exact where nothing else decides which of its rows there are. */
  public String filters(Dataset rows) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().optimizedPlan();
    List found = new ArrayList();
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      if (at instanceof Filter) found.add(((Filter) at).condition());
      at = at instanceof Filter ? ((Filter) at).child() : ((Project) at).child();
    }
    Map made = Predicates.described(RowChanges.seq(found));
    if (!(at instanceof DataSourceV2ScanRelation)) made.put("exact", Boolean.FALSE);
    return Json.text(made);
  }

  /** The first columns of a frame as these attributes, the others as they are. */
  static Dataset bound(SparkSession session, Dataset rows, Seq attributes) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    List wanted = RowChanges.list(attributes);
    List given = RowChanges.list(plan.output());
    List made = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      if (i < wanted.size()) {
        Attribute as = (Attribute) wanted.get(i);
        made.add(
            new Alias((Expression) given.get(i), as.name(), as.exprId(), as.qualifier(), Option.empty(),
                (Seq) (Object) Nil$.MODULE$));
      } else {
        made.add(given.get(i));
      }
    }
    return Dataset$.MODULE$.ofRows(session, new Project(RowChanges.seq(made), plan));
  }
}
