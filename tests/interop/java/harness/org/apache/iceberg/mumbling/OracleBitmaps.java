/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg.mumbling;

import java.nio.ByteBuffer;
import org.apache.iceberg.ManifestBitmap;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** Reads inline bitmaps and PFOR chunks with Iceberg's code. */
public class OracleBitmaps {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
  private static final int CONTAINER_SIZE = 256;

  private OracleBitmaps() {}

  public static JsonNode read(JsonNode request) {
    byte[] bytes = fromHex(request.get("hex").asText());
    return positions(ByteBuffer.wrap(bytes));
  }

  /** Cardinality and every set position of a bitmap; null for null. */
  public static JsonNode positions(ByteBuffer buffer) {
    if (buffer == null) {
      return NODES.nullNode();
    }
    return positions(MumblingBitmaps.read(buffer.duplicate()));
  }

  public static JsonNode positions(ManifestBitmap bitmap) {
    if (bitmap == null) {
      return NODES.nullNode();
    }
    ByteBuffer buffer = bitmap.buffer();
    int start = buffer.position();
    int containers = (buffer.get(start + 4) & 0xFF) | ((buffer.get(start + 5) & 0xFF) << 8);
    ObjectNode result = NODES.objectNode();
    result.put("cardinality", bitmap.cardinality());
    ArrayNode positions = result.putArray("positions");
    for (int position = 0; position < containers * CONTAINER_SIZE; position += 1) {
      if (bitmap.isSet(position)) {
        positions.add(position);
      }
    }
    return result;
  }

  public static JsonNode encode(JsonNode request) {
    int[] values = ints(request.get("values"));
    return NODES.textNode(toHex(PFOREncoding.encode(values, values.length)));
  }

  public static JsonNode decode(JsonNode request) {
    ByteBuffer buffer = ByteBuffer.wrap(fromHex(request.get("hex").asText()));
    ArrayNode values = NODES.arrayNode();
    for (int value : PFOREncoding.decode(buffer, request.get("count").asInt())) {
      values.add(value);
    }
    return values;
  }

  private static int[] ints(JsonNode array) {
    int[] values = new int[array.size()];
    for (int i = 0; i < values.length; i += 1) {
      values[i] = array.get(i).asInt();
    }
    return values;
  }

  private static byte[] fromHex(String hex) {
    return java.util.HexFormat.of().parseHex(hex);
  }

  private static String toHex(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return java.util.HexFormat.of().formatHex(bytes);
  }
}
