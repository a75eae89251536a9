package frazil.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** For `spark.sql.extensions`: the statements and row-level changes of tables in Frazil catalogs. */
public class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser(new Parsers());
    extensions.injectResolutionRule(new Names());
    extensions.injectPostHocResolutionRule(new Rules());
    extensions.injectPlannerStrategy(new Strategies());
    return BoxedUnit.UNIT;
  }

  /** Makes the parser of a session. */
  static class Parsers extends AbstractFunction2<SparkSession, ParserInterface, ParserInterface> {
    @Override
    public ParserInterface apply(SparkSession session, ParserInterface parser) {
      return Statements.over(parser, session);
    }
  }

  /** Makes the strategy of a session. */
  static class Strategies extends AbstractFunction1<SparkSession, SparkStrategy> {
    @Override
    public SparkStrategy apply(SparkSession session) {
      return new RowChanges();
    }
  }

  /** Makes the rule for names of a session. */
  static class Names extends AbstractFunction1<SparkSession, Rule<LogicalPlan>> {
    @Override
    public Rule<LogicalPlan> apply(SparkSession session) {
      return new OpenNames((org.apache.spark.sql.classic.SparkSession) session);
    }
  }

  /** Makes the rule for changes of rows of a session. */
  static class Rules extends AbstractFunction1<SparkSession, Rule<LogicalPlan>> {
    @Override
    public Rule<LogicalPlan> apply(SparkSession session) {
      return new RowCommands((org.apache.spark.sql.classic.SparkSession) session);
    }
  }
}
