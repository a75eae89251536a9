package frazil.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.internal.SessionState;
import scala.Function0;
import scala.Function2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction2;

/**
 * Catalogs of a session that runs already, for which Spark has no public way: the catalog, and the rules that its
 * statements need. Sessions that Spark copies from such a one, as it does for the batches of a stream, get them, too.
 */
public class Sessions extends AbstractFunction2<SparkSession, SessionState, SessionState> {
  private final Function2<SparkSession, SessionState, SessionState> copy;

  private Sessions(Function2<SparkSession, SessionState, SessionState> copy) {
    this.copy = copy;
  }

  /** Gives a session a catalog. */
  public static void register(SparkSession session, String name, Bridge bridge) throws IllegalAccessException {
    SessionState state = session.sessionState();
    catalogs(state.catalogManager()).put(name, new FrazilCatalog(bridge, session, name));
    if (follow(state)) {
      read(state, session);
      resolve(state.analyzer(), session);
      List<SparkStrategy> strategies = new ArrayList<>(Scala.list(state.experimentalMethods().extraStrategies()));
      strategies.add(new RowChanges());
      state.experimentalMethods().extraStrategies_$eq(Scala.seq(strategies));
    }
  }

  /**
   * A copy that Spark makes of a session. Its analyzer is built when it is first needed: the copy has no state before
   * this is over, which some rules ask for.
   */
  @Override
  public SessionState apply(SparkSession session, SessionState parent) {
    SessionState state = copy.apply(session, parent);
    try {
      follow(state);
      read(state, session);
      Field builder = field(state, "analyzerBuilder");
      @SuppressWarnings("unchecked")
      Function0<Analyzer> build = (Function0<Analyzer>) builder.get(state);
      Map<String, CatalogPlugin> catalogs = catalogs(parent.catalogManager());
      builder.set(state, new Built(build, session, catalogs));
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
    return state;
  }

  /** Builds the analyzer of a copied session. */
  private static class Built extends AbstractFunction0<Analyzer> {
    private final Function0<Analyzer> build;
    private final SparkSession session;
    private final Map<String, CatalogPlugin> catalogs;

    Built(Function0<Analyzer> build, SparkSession session, Map<String, CatalogPlugin> catalogs) {
      this.build = build;
      this.session = session;
      this.catalogs = catalogs;
    }

    @Override
    public Analyzer apply() {
      Analyzer analyzer = build.apply();
      try {
        for (Map.Entry<String, CatalogPlugin> entry : catalogs.entrySet()) {
          if (!(entry.getValue() instanceof FrazilCatalog catalog)) continue;
          FrazilCatalog own = new FrazilCatalog(catalog.bridge(), session, entry.getKey());
          catalogs(analyzer.catalogManager()).put(entry.getKey(), own);
        }
        resolve(analyzer, session);
      } catch (IllegalAccessException error) {
        throw new IllegalStateException(error);
      }
      return analyzer;
    }
  }

  /** Lets copies of a session follow it; false if they do already. */
  private static boolean follow(SessionState state) throws IllegalAccessException {
    Field copies = field(state, "createClone");
    @SuppressWarnings("unchecked")
    Function2<SparkSession, SessionState, SessionState> copy =
        (Function2<SparkSession, SessionState, SessionState>) copies.get(state);
    if (copy instanceof Sessions) return false;
    copies.set(state, new Sessions(copy));
    return true;
  }

  private static void read(SessionState state, SparkSession session) throws IllegalAccessException {
    field(state, "sqlParser").set(state, Statements.over(state.sqlParser(), session));
  }

  private static void resolve(Analyzer analyzer, SparkSession session) throws IllegalAccessException {
    add(analyzer, "extendedResolutionRules", new OpenNames(session));
    add(analyzer, "postHocResolutionRules", new RowCommands(session));
  }

  @SuppressWarnings("unchecked")
  private static void add(Analyzer analyzer, String name, Rule<LogicalPlan> rule) throws IllegalAccessException {
    Field field = field(analyzer, name);
    List<Rule<LogicalPlan>> rules = new ArrayList<>(Scala.list((Seq<Rule<LogicalPlan>>) field.get(analyzer)));
    rules.add(rule);
    field.set(analyzer, Scala.seq(rules));
  }

  @SuppressWarnings("unchecked")
  private static Map<String, CatalogPlugin> catalogs(CatalogManager manager) throws IllegalAccessException {
    return CollectionConverters.asJava(
        (scala.collection.mutable.Map<String, CatalogPlugin>) field(manager, "catalogs").get(manager));
  }

  private static Field field(Object owner, String name) {
    for (Class<?> kind = owner.getClass(); kind != null; kind = kind.getSuperclass()) {
      for (Field field : kind.getDeclaredFields()) {
        if (!field.getName().equals(name)) continue;
        field.setAccessible(true);
        return field;
      }
    }
    throw new Bridge.Refused("Unsupported", "this version of Spark has no " + name);
  }
}
