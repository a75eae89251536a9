package frazil;

/**
 * What Spark finds first for `format("frazil")` where this jar is loaded. It is found by its name and is no registered
 * service: Spark refuses a service that has the name of a Python data source.
 */
public class DefaultSource extends frazil.spark.Source {}
