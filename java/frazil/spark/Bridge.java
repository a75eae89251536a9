package frazil.spark;

import java.util.function.BiFunction;

/** The way to Python, where every rule lives: one call with a verb and a JSON text, one JSON text back. */
public class Bridge {
  private final BiFunction python;

  public Bridge(BiFunction python) {
    this.python = python;
  }

  /** Asks Python; what it refuses becomes an exception that shows Frazil's own message first. */
  Json ask(String verb, Object request) {
    Json answer = Json.parsed((String) python.apply(verb, sent(request)));
    refuse(answer);
    return answer;
  }

  /** Asks Python for an object of this virtual machine. */
  Object fetch(String verb, Object request) {
    Object answer = python.apply(verb, sent(request));
    if (answer instanceof String) refuse(Json.parsed((String) answer));
    return answer;
  }

  private static Object sent(Object request) {
    return request instanceof java.util.Map ? Json.text(request) : request;
  }

  private static void refuse(Json answer) {
    if (answer.has("error")) {
      throw new Refused(answer.of("error").of("kind").text(), answer.of("error").of("message").text());
    }
  }

  /** What Frazil refused, with the kind of its error. */
  public static class Refused extends IllegalArgumentException {
    final String kind;

    Refused(String kind, String message) {
      super(message);
      this.kind = kind;
    }
  }
}
