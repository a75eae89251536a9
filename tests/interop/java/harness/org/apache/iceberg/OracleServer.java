/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.mumbling.OracleBitmaps;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Serves requests to Iceberg's own code: one JSON object per line on standard input, one per line on standard output.
 *
 * <p>A request has {@code op} and its arguments; a reply has {@code result} or {@code error} and {@code trace}. Whatever
 * libraries print goes to standard error.
 */
public class OracleServer {
  static final ObjectMapper JSON = new ObjectMapper();

  interface Operation {
    JsonNode answer(JsonNode request) throws Exception;
  }

  private OracleServer() {}

  public static void main(String[] args) throws Exception {
    PrintStream replies = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Map<String, Operation> operations = operations();
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      replies.println(JSON.writeValueAsString(reply(operations, line)));
      replies.flush();
    }
  }

  private static Map<String, Operation> operations() {
    Map<String, Operation> operations = new TreeMap<>();
    operations.put("ping", request -> JSON.getNodeFactory().textNode("pong"));
    operations.put("bitmap.read", OracleBitmaps::read);
    operations.put("pfor.encode", OracleBitmaps::encode);
    operations.put("pfor.decode", OracleBitmaps::decode);
    operations.put("manifest.schema", OracleManifests::schema);
    operations.put("manifest.read", OracleManifests::read);
    operations.put("table.describe", OracleTables::describe);
    operations.put("table.rows", OracleTables::rows);
    operations.put("table.files", OracleTables::files);
    operations.put("table.create", OracleWrites::create);
    operations.put("table.partition_by", OracleWrites::partitionBy);
    operations.put("table.add_column", OracleWrites::addColumn);
    operations.put("table.append", OracleWrites::append);
    operations.put("table.delete_equal", OracleWrites::deleteEqual);
    operations.put("table.delete_positions", OracleWrites::deletePositions);
    return operations;
  }

  private static ObjectNode reply(Map<String, Operation> operations, String line) {
    ObjectNode reply = JSON.createObjectNode();
    try {
      JsonNode request = JSON.readTree(line);
      String op = request.path("op").asText();
      Operation operation = operations.get(op);
      if (operation == null) {
        throw new IllegalArgumentException("Unknown operation: " + op);
      }
      reply.set("result", operation.answer(request));
    } catch (Exception | Error failure) {
      StringWriter trace = new StringWriter();
      failure.printStackTrace(new PrintWriter(trace));
      reply.put("error", failure.getClass().getName() + ": " + failure.getMessage());
      reply.put("trace", trace.toString());
    }
    return reply;
  }
}
