package frazil.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Spark's parser, with the statements on tables of the catalog that Spark has no grammar for: partition fields,
 * branches, tags, write order. Such a statement becomes a CALL that hands its text to Python.
 */
public class Statements implements InvocationHandler {
  private final ParserInterface spark;
  private final SparkSession session;
  private final String catalog;
  private final Pattern ours;
  private static final Pattern ALTER = Pattern.compile("\\s*ALTER\\s+TABLE\\s", Pattern.CASE_INSENSITIVE);

  private Statements(ParserInterface spark, SparkSession session, String catalog) {
    this.spark = spark;
    this.session = session;
    this.catalog = catalog;
    this.ours =
        Pattern.compile("\\s*ALTER\\s+TABLE\\s+`?" + Pattern.quote(catalog) + "`?\\s*\\..*",
            Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  }

  public static ParserInterface over(ParserInterface spark, SparkSession session, String catalog) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            ParserInterface.class.getClassLoader(),
            new Class[] {ParserInterface.class},
            new Statements(spark, session, catalog));
  }

  private boolean isOurs(String text) {
    if (ours.matcher(text).matches()) return true;
    return ALTER.matcher(text).lookingAt() && session.catalog().currentCatalog().equals(catalog);
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(spark, arguments);
    } catch (InvocationTargetException failure) {
      if (!method.getName().startsWith("parsePlan") || !isOurs((String) arguments[0])) throw failure.getCause();
      String text = ((String) arguments[0]).replace("\\", "\\\\").replace("'", "\\'");
      return spark.parsePlan("CALL `" + catalog + "`.system.execute(statement => '" + text + "')");
    }
  }
}
