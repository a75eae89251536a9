package frazil.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;

/**
 * Spark's parser, with the statements on tables of Frazil catalogs that Spark has no grammar for (partition fields,
 * branches, tags, write order) or carries out for its own tables alone. Such a statement becomes a CALL that hands its
 * text to Python.
 */
public class Statements implements InvocationHandler {
  private static final String NAME = "(?:`([^`]+)`|(\\w+))\\s*(\\.?)";
  private static final String COMMENTS = "(?:\\s|--[^\\n]*+\\n|/\\*.*?\\*/)*+";
  private static final Pattern ALTER = pattern("ALTER\\s+TABLE\\s+" + NAME + ".*");
  private static final Pattern[] OURS = {
    pattern("CREATE\\s+TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?" + NAME + "[^\\s(]*\\s+LIKE\\s.*"),
    pattern("SHOW\\s+PARTITIONS\\s+" + NAME + ".*")
  };
  private final ParserInterface spark;
  private final SparkSession session;

  private Statements(ParserInterface spark, SparkSession session) {
    this.spark = spark;
    this.session = session;
  }

  public static ParserInterface over(ParserInterface spark, SparkSession session) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            ParserInterface.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            new Statements(spark, session));
  }

  private static Pattern pattern(String text) {
    return Pattern.compile(COMMENTS + text, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  }

  /** The Frazil catalog that a statement is for: the one it names, else the current one; null if another is meant. */
  private String catalog(Pattern pattern, String text) {
    Matcher found = pattern.matcher(text);
    if (!found.matches()) return null;
    CatalogManager catalogs = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    String first = found.group(1) != null ? found.group(1) : found.group(2);
    boolean named = !found.group(3).isEmpty() && catalogs.isCatalogRegistered(first);
    String name = named ? first : catalogs.currentCatalog().name();
    return catalogs.catalog(name) instanceof FrazilCatalog ? name : null;
  }

  private Object handed(String catalog, String text) throws Exception {
    String quoted = text.replace("\\", "\\\\").replace("'", "\\'");
    return spark.parsePlan("CALL `" + catalog + "`.system.execute(statement => '" + quoted + "')");
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean plan = method.getName().startsWith("parsePlan");
    for (Pattern pattern : plan ? OURS : new Pattern[0]) {
      String catalog = catalog(pattern, (String) arguments[0]);
      if (catalog != null) return handed(catalog, (String) arguments[0]);
    }
    try {
      Object parsed = method.invoke(spark, arguments);
      if (!plan) return parsed;
      CatalogManager catalogs = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
      return ViewStatements.handed((LogicalPlan) parsed, catalogs, spark);
    } catch (InvocationTargetException failure) {
      String catalog = plan ? catalog(ALTER, (String) arguments[0]) : null;
      if (catalog == null) throw failure.getCause();
      return handed(catalog, (String) arguments[0]);
    }
  }
}
