package frazil.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** Scala's collections as Java's, and back. */
class Scala {
  private Scala() {}

  static <T> List<T> list(scala.collection.Seq<T> items) {
    return new ArrayList<>(CollectionConverters.asJava(items));
  }

  static <T> Seq<T> seq(List<? extends T> items) {
    List<T> copied = new ArrayList<>(items);
    return CollectionConverters.asScala(copied).toSeq();
  }

  static scala.collection.immutable.Map<String, String> map(String key, String value) {
    return scala.collection.immutable.Map.from(CollectionConverters.asScala(Map.of(key, value)));
  }

  static <A, B> AbstractFunction1<A, B> function(Function<A, B> function) {
    return new AbstractFunction1<>() {
      @Override
      public B apply(A value) {
        return function.apply(value);
      }
    };
  }

  static <T> Seq<T> none() {
    return seq(List.of());
  }
}
