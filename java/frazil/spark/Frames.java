package frazil.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
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
  public Dataset<Row> rows(Bridge bridge, String described, String metadataColumns) {
    FrazilTable table = new FrazilTable(bridge, session, described);
    DataSourceV2Relation relation = DataSourceV2Relation.create(table, Option.empty(), Option.empty());
    Dataset<Row> rows = Dataset$.MODULE$.ofRows(session, relation);
    Json names = Json.parsed(metadataColumns);
    if (names.size() == 0) return rows;
    Column[] columns = new Column[names.size() + 1];
    columns[0] = rows.col("*");
    for (int i = 0; i < names.size(); i++) columns[i + 1] = rows.metadataColumn(names.at(i).text());
    return rows.select(columns);
  }

  /**
   * One select from texts: a column in addition, a filter, and what is selected. In the texts a name with a number
   * stands for an expression that is given apart, as a text of its own or as one of the columns.
   */
  public Dataset<Row> selected(Dataset<Row> rows, String request, List<Column> columns) throws ParseException {
    Json asked = Json.parsed(request);
    Json given = asked.of("given");
    Map<String, Expression> known = new HashMap<>();
    for (int i = 0; i < given.size(); i++) {
      Object expression = given.at(i).value();
      known.put(
          GIVEN + i,
          expression instanceof String text
              ? parsed(text)
              : session.expression(columns.get(((Number) expression).intValue())));
    }
    Given expressions = new Given(known);
    LogicalPlan plan = analyzed(rows);
    if (!asked.of("with").isNull()) {
      List<NamedExpression> all = new ArrayList<>(Scala.list(plan.output()));
      all.add(named(asked.of("with"), expressions));
      plan = new Project(Scala.seq(all), plan);
    }
    if (!asked.of("where").isNull()) {
      plan = new Filter(parsed(asked.of("where").text()).transform(expressions), plan);
    }
    List<NamedExpression> selected = new ArrayList<>();
    for (Json item : asked.of("select").items()) selected.add(named(item, expressions));
    return Dataset$.MODULE$.ofRows(session, new Project(Scala.seq(selected), plan));
  }

  private Expression parsed(String text) throws ParseException {
    return session.sessionState().sqlParser().parseExpression(text);
  }

  private static LogicalPlan analyzed(Dataset<Row> rows) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().analyzed();
  }

  private Alias named(Json item, Given expressions) throws ParseException {
    return new Alias(
        parsed(item.at(1).text()).transform(expressions),
        item.at(0).text(),
        NamedExpression.newExprId(),
        Scala.none(),
        Option.empty(),
        Scala.none());
  }

  /** Puts the expressions that are given in their places. */
  static class Given extends AbstractPartialFunction<Expression, Expression> {
    private final Map<String, Expression> known;

    Given(Map<String, Expression> known) {
      this.known = known;
    }

    @Override
    public boolean isDefinedAt(Expression node) {
      return node instanceof UnresolvedAttribute column && known.containsKey(column.name());
    }

    @Override
    @SuppressWarnings("unchecked") // Scala's bounds of the two types have no form in Java
    public <A1 extends Expression, B1> B1 applyOrElse(A1 node, Function1<A1, B1> otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      return (B1) known.get(((UnresolvedAttribute) (Expression) node).name());
    }
  }

  /** The filters over a scan as JSON; exact where nothing else decides which of its rows there are. */
  public String filters(Dataset<Row> rows) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().optimizedPlan();
    List<Expression> conditions = new ArrayList<>();
    while (plan instanceof Project || plan instanceof Filter) {
      if (plan instanceof Filter filter) conditions.add(filter.condition());
      plan = plan.children().head();
    }
    Map<String, Object> described = Predicates.described(conditions);
    if (!(plan instanceof DataSourceV2ScanRelation)) described.put("exact", false);
    return Json.text(described);
  }

  /** The columns of a frame that have the names of these attributes as those attributes, the others as they are. */
  static Dataset<Row> bound(SparkSession session, Dataset<Row> rows, Seq<AttributeReference> attributes) {
    LogicalPlan plan = analyzed(rows);
    Map<String, Attribute> known = new HashMap<>();
    for (Attribute attribute : Scala.list(attributes)) known.put(attribute.name(), attribute);
    List<NamedExpression> columns = new ArrayList<>();
    for (Attribute column : Scala.list(plan.output())) {
      Attribute as = known.get(column.name());
      columns.add(
          as == null
              ? column
              : new Alias(column, as.name(), as.exprId(), as.qualifier(), Option.empty(), Scala.none()));
    }
    return Dataset$.MODULE$.ofRows(session, new Project(Scala.seq(columns), plan));
  }

  /** What the rows of a frame were read from, as JSON. */
  public String scanned(Dataset<Row> rows) {
    return Json.text(Map.of("scanned", Scanned.by(rows)));
  }
}
