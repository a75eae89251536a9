package frazil.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** For `spark.sql.extensions`: the statements and row-level changes of tables in Frazil catalogs. */
public class Extensions extends AbstractFunction1 {
  public Object apply(Object given) {
    SparkSessionExtensions extensions = (SparkSessionExtensions) given;
    extensions.injectParser(new Parsers());
    extensions.injectPlannerStrategy(new Strategies());
    return BoxedUnit.UNIT;
  }

  /** Makes the parser of a session. */
  static class Parsers extends AbstractFunction2 {
    public Object apply(Object session, Object parser) {
      return Statements.over((ParserInterface) parser, (SparkSession) session);
    }
  }

  /** Makes the strategy of a session. */
  static class Strategies extends AbstractFunction1 {
    public Object apply(Object session) {
      return new RowChanges((org.apache.spark.sql.classic.SparkSession) session);
    }
  }
}
