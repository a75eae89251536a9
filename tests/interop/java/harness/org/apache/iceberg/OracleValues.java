/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DateTimeUtil;

/**
 * One exact JSON form for every Iceberg value, the same for internal values (manifests) and generic records (rows).
 *
 * <p>Dates, times and timestamps are counts of the type's unit; floats and doubles are their bits; decimals are
 * unscaled integers as text; uuid, fixed and binary are hexadecimal; structs are objects by field id; maps are lists
 * of pairs.
 */
class OracleValues {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private OracleValues() {}

  static JsonNode encode(Type type, Object value) {
    if (value == null) {
      return NODES.nullNode();
    }
    switch (type.typeId()) {
      case BOOLEAN:
        return NODES.booleanNode((Boolean) value);
      case INTEGER:
        return NODES.numberNode((Integer) value);
      case LONG:
        return NODES.numberNode(((Number) value).longValue());
      case FLOAT:
        return NODES.numberNode(Float.floatToRawIntBits((Float) value));
      case DOUBLE:
        return NODES.numberNode(Double.doubleToRawLongBits((Double) value));
      case DATE:
        return NODES.numberNode(
            value instanceof LocalDate ? DateTimeUtil.daysFromDate((LocalDate) value) : (Integer) value);
      case TIME:
        return NODES.numberNode(
            value instanceof LocalTime ? DateTimeUtil.microsFromTime((LocalTime) value) : (Long) value);
      case TIMESTAMP:
        return NODES.numberNode(micros(value));
      case TIMESTAMP_NANO:
        return NODES.numberNode(nanos(value));
      case STRING:
        return NODES.textNode(value.toString());
      case UUID:
        return NODES.textNode(value.toString());
      case FIXED:
      case BINARY:
      case GEOMETRY:
      case GEOGRAPHY:
        return NODES.textNode(hex(value));
      case DECIMAL:
        return decimal((Types.DecimalType) type, (BigDecimal) value);
      case STRUCT:
        return struct(type.asStructType(), (StructLike) value);
      case LIST:
        ArrayNode items = NODES.arrayNode();
        for (Object item : (List<?>) value) {
          items.add(encode(type.asListType().elementType(), item));
        }
        return items;
      case MAP:
        ArrayNode pairs = NODES.arrayNode();
        for (Map.Entry<?, ?> pair : ((Map<?, ?>) value).entrySet()) {
          ArrayNode keyAndValue = pairs.addArray();
          keyAndValue.add(encode(type.asMapType().keyType(), pair.getKey()));
          keyAndValue.add(encode(type.asMapType().valueType(), pair.getValue()));
        }
        return pairs;
      case VARIANT:
        return NODES.textNode(value.toString());
      default:
        throw new UnsupportedOperationException("Cannot show a value of type " + type);
    }
  }

  private static JsonNode struct(Types.StructType type, StructLike value) {
    ObjectNode node = NODES.objectNode();
    List<Types.NestedField> fields = type.fields();
    for (int i = 0; i < fields.size(); i += 1) {
      Types.NestedField field = fields.get(i);
      node.set(Integer.toString(field.fieldId()), encode(field.type(), value.get(i, Object.class)));
    }
    return node;
  }

  private static JsonNode decimal(Types.DecimalType type, BigDecimal value) {
    if (value.scale() != type.scale()) {
      throw new IllegalStateException("Scale of " + value + " is not that of " + type);
    }
    return NODES.textNode(value.unscaledValue().toString());
  }

  private static long micros(Object value) {
    if (value instanceof LocalDateTime) {
      return DateTimeUtil.microsFromTimestamp((LocalDateTime) value);
    } else if (value instanceof OffsetDateTime) {
      return DateTimeUtil.microsFromTimestamptz((OffsetDateTime) value);
    }
    return (Long) value;
  }

  private static long nanos(Object value) {
    if (value instanceof LocalDateTime) {
      return DateTimeUtil.nanosFromTimestamp((LocalDateTime) value);
    } else if (value instanceof OffsetDateTime) {
      return DateTimeUtil.nanosFromTimestamptz((OffsetDateTime) value);
    }
    return (Long) value;
  }

  static String hex(Object value) {
    if (value instanceof byte[]) {
      return HexFormat.of().formatHex((byte[]) value);
    }
    ByteBuffer buffer = ((ByteBuffer) value).duplicate();
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** The generic-record value of a JSON form; struct members may be left out, which means null. */
  static Object decode(Type type, JsonNode node) {
    if (node == null || node.isNull()) {
      return null;
    }
    switch (type.typeId()) {
      case BOOLEAN:
        return node.asBoolean();
      case INTEGER:
        return node.asInt();
      case LONG:
        return node.asLong();
      case FLOAT:
        return Float.intBitsToFloat(node.asInt());
      case DOUBLE:
        return Double.longBitsToDouble(node.asLong());
      case DATE:
        return DateTimeUtil.dateFromDays(node.asInt());
      case TIME:
        return DateTimeUtil.timeFromMicros(node.asLong());
      case TIMESTAMP:
        return ((Types.TimestampType) type).shouldAdjustToUTC()
            ? DateTimeUtil.timestamptzFromMicros(node.asLong())
            : DateTimeUtil.timestampFromMicros(node.asLong());
      case TIMESTAMP_NANO:
        return ((Types.TimestampNanoType) type).shouldAdjustToUTC()
            ? DateTimeUtil.timestamptzFromNanos(node.asLong())
            : DateTimeUtil.timestampFromNanos(node.asLong());
      case STRING:
        return node.asText();
      case UUID:
        return UUID.fromString(node.asText());
      case FIXED:
        return HexFormat.of().parseHex(node.asText());
      case BINARY:
        return ByteBuffer.wrap(HexFormat.of().parseHex(node.asText()));
      case DECIMAL:
        return new BigDecimal(new BigInteger(node.asText()), ((Types.DecimalType) type).scale());
      case STRUCT:
        return record(type.asStructType(), node);
      case LIST:
        List<Object> items = new ArrayList<>();
        for (JsonNode item : node) {
          items.add(decode(type.asListType().elementType(), item));
        }
        return items;
      case MAP:
        Map<Object, Object> map = new LinkedHashMap<>();
        for (JsonNode pair : node) {
          map.put(
              decode(type.asMapType().keyType(), pair.get(0)),
              decode(type.asMapType().valueType(), pair.get(1)));
        }
        return map;
      default:
        throw new UnsupportedOperationException("Cannot read a value of type " + type);
    }
  }

  static Record record(Types.StructType type, JsonNode node) {
    Record record = GenericRecord.create(type);
    List<Types.NestedField> fields = type.fields();
    for (int i = 0; i < fields.size(); i += 1) {
      Types.NestedField field = fields.get(i);
      record.set(i, decode(field.type(), node.get(Integer.toString(field.fieldId()))));
    }
    return record;
  }
}
