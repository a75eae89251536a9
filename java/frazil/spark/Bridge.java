package frazil.spark;

import java.util.Locale;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.SparkIllegalArgumentException;

/** The way to Python, where every rule lives: one call with a verb and a JSON text, one JSON text back. */
public class Bridge {
  private final BiFunction<Object, Object, Object> python;

  public Bridge(BiFunction<Object, Object, Object> python) {
    this.python = python;
  }

  /** Asks Python; what it refuses becomes an exception that shows Frazil's own message first. */
  Json ask(String verb, Object request) {
    return Json.parsed((String) fetch(verb, request));
  }

  /** Asks Python for an object of this virtual machine. */
  Object fetch(String verb, Object request) {
    Object answer = python.apply(verb, sent(request));
    if (answer instanceof Throwable error) throw Bridge.<RuntimeException>unchanged(error);
    if (answer instanceof String) refuse(Json.parsed((String) answer));
    return answer;
  }

  /** An error of Spark's that Python met: whoever catches it sees what Spark said. */
  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T unchanged(Throwable error) throws T {
    throw (T) error;
  }

  private static Object sent(Object request) {
    return request instanceof Map<?, ?> ? Json.text(request) : request;
  }

  private static void refuse(Json answer) {
    if (answer.has("error")) {
      String kind = answer.of("error").of("kind").text();
      String message = answer.of("error").of("message").text();
      if (kind.equals("CommitConflict")) throw new CommitConflict(message);
      throw new Refused(kind, message);
    }
  }

  /** What Frazil refused, with the kind of its error. Spark passes it on as it is, without a trace of its own. */
  public static class Refused extends SparkIllegalArgumentException {
    private static final long serialVersionUID = 1L;
    private static final Map<String, String> STATES =
        Map.of("InvalidInput", "22023", "NotFound", "42704", "AlreadyExists", "42710", "Unsupported", "0A000");
    final String kind;
    private final String told;

    Refused(String kind, String told) {
      super("INTERNAL_ERROR", Scala.map("message", told));
      this.kind = kind;
      this.told = told;
    }

    @Override
    public String getMessage() {
      return told;
    }

    @Override
    public String getCondition() {
      return "FRAZIL_" + kind.replaceAll("(?<=[a-z])(?=[A-Z])", "_").toUpperCase(Locale.ROOT);
    }

    @Override
    public String getErrorClass() {
      return getCondition();
    }

    @Override
    public String getSqlState() {
      return STATES.getOrDefault(kind, "58000");
    }

    @Override
    public boolean isInternalError() {
      return false;
    }

    @Override
    public Map<String, String> getMessageParameters() {
      return Map.of("message", told);
    }
  }
}
