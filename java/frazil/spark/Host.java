package frazil.spark;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.sql.SparkSession;

/**
 * A Python process beside the driver, for catalogs that a session's configuration names. It is started with the first
 * of them, attaches to this virtual machine, and ends with it.
 */
public class Host {
  private static Host one;
  private final SparkSession session;
  private final CountDownLatch ready = new CountDownLatch(1);
  private BiFunction<Object, Object, Object> python;

  private Host(SparkSession session) {
    this.session = session;
  }

  /** The catalog that a session's configuration describes. */
  static Bridge opened(SparkSession session, String name, Map<String, String> options) {
    List<BiFunction<Object, Object, Object>> answer = new ArrayList<>();
    Bridge host = new Bridge(started(session, options).python);
    host.ask("open catalog", new Object[] {session, name, Json.text(options), answer});
    return new Bridge(answer.get(0));
  }

  private static synchronized Host started(SparkSession session, Map<String, String> options) {
    if (one == null || one.session.sparkContext().isStopped()) {
      Host host = new Host(session);
      host.start(interpreter(session, options));
      one = host;
    }
    return one;
  }

  private static String interpreter(SparkSession session, Map<String, String> options) {
    if (options.containsKey("python")) return options.get("python");
    String[] settings = {"spark.pyspark.driver.python", "spark.pyspark.python"};
    for (String setting : settings) {
      if (session.sparkContext().conf().contains(setting)) return session.sparkContext().conf().get(setting);
    }
    String[] variables = {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"};
    for (String variable : variables) {
      if (System.getenv(variable) != null) return System.getenv(variable);
    }
    return "python3";
  }

  private void start(String interpreter) {
    Py4JServer server = new Py4JServer(session.sparkContext().conf());
    server.start();
    String key = "frazil.spark.catalog.host." + UUID.randomUUID();
    System.getProperties().put(key, this);
    ProcessBuilder command = new ProcessBuilder(interpreter, "-m", "frazil.spark.catalog.host", key);
    Map<String, String> environment = command.environment();
    environment.put("PYSPARK_GATEWAY_PORT", String.valueOf(server.getListeningPort()));
    environment.put("PYSPARK_GATEWAY_SECRET", server.secret());
    try {
      File log = File.createTempFile("frazil-host", ".log");
      log.deleteOnExit();
      // Its input stays open as long as this virtual machine lives.
      Process process = command.redirectErrorStream(true).redirectOutput(log).start();
      while (!ready.await(100, TimeUnit.MILLISECONDS)) {
        if (!process.isAlive()) throw refused(interpreter, log);
      }
    } catch (java.io.IOException error) {
      throw refused(interpreter, null);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(error);
    } finally {
      System.getProperties().remove(key);
    }
  }

  private static IllegalStateException refused(String interpreter, File log) {
    String last = "it cannot be started";
    if (log != null) {
      try {
        String[] lines = java.nio.file.Files.readString(log.toPath()).trim().split("\n");
        last = lines[lines.length - 1];
      } catch (java.io.IOException error) {
        last = "it ended at once";
      }
    }
    return new IllegalStateException(
        "the catalog needs a Python with frazil beside Spark's driver; " + interpreter + " failed to start: " + last
            + ". Set spark.pyspark.driver.python, PYSPARK_PYTHON, or the catalog's option python to one that has it");
  }

  // What the process asks for

  public SparkSession session() {
    return session;
  }

  public JavaSparkContext context() {
    return JavaSparkContext.fromSparkContext(session.sparkContext());
  }

  public void arrived(BiFunction<Object, Object, Object> python) {
    this.python = python;
    ready.countDown();
  }
}
