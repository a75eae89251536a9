"""The Java classes that Spark needs: packaged or compiled once, and loaded into a session.

A wheel brings them as a jar. A checkout has their sources in `java/`; they are compiled with the
JDK's `javac` against the very Spark that runs, and kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = Path(__file__).resolve().parents[1]
PACKAGED = _PACKAGE / "frazil-spark.jar"
_MARK = "frazil.spark.loader"
_FRAMES = "_frazil_frames"
_APPLICATION = "org.apache.spark.util.MutableURLClassLoader"


def classes(spark: SparkSession) -> Any:
    """The class loader that knows Frazil's classes; executors get them too."""
    jvm = spark._jvm
    shared = spark._jsparkSession.sharedState()
    loader = shared.jarClassLoader()
    properties = jvm.System.getProperties()
    mark = f"{_MARK}.{spark.sparkContext.applicationId}"
    if not properties.containsKey(mark):
        if loader.getResource("frazil/spark/FrazilCatalog.class") is None:
            _add(spark, jar(spark))
        properties.put(mark, "loaded")
    return loader


def _add(spark: SparkSession, path: Path) -> None:
    """Give the jar to the session and its executors, and to all threads of the driver.

    A session's own loader is known to the thread that adds a jar; other threads, which look up the
    data source too, have the application's.
    """
    application = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    if application.getClass().getName() == _APPLICATION:
        application.addURL(spark._jvm.java.io.File(str(path)).toURI().toURL())
    spark._jsparkSession.sessionState().resourceLoader().addJar(str(path))


def new(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """An instance of one of the classes."""
    class_, array = _class_and_array(spark, name, arguments)
    for constructor in class_.getConstructors():
        if len(constructor.getParameterTypes()) == len(arguments):
            return constructor.newInstance(array)
    raise AssertionError(f"{name} has no constructor with {len(arguments)} arguments")


def call(spark: SparkSession, name: str, method: str, *arguments: Any) -> Any:
    """A static method of one of the classes."""
    class_, array = _class_and_array(spark, name, arguments)
    target = next(candidate for candidate in class_.getMethods() if candidate.getName() == method)
    return target.invoke(None, array)


def _class_and_array(spark: SparkSession, name: str, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    array_list = spark._jvm.java.util.ArrayList()
    for argument in arguments:
        array_list.add(argument)
    return classes(spark).loadClass(f"frazil.spark.{name}"), array_list.toArray()


def frames(spark: SparkSession) -> Any:
    """The object that makes frames for a session, one call each."""
    session = spark._jsparkSession
    known = spark.sparkContext._gateway.__dict__.setdefault(_FRAMES, {})
    key = session._target_id
    if key not in known:
        known[key] = (session, new(spark, "Frames", session))
    return known[key][1]


def jar(spark: SparkSession) -> Path:
    """The jar for the session's Spark."""
    system = spark._jvm.java.lang.System
    home = Path(str(system.getProperty("java.home")))
    return _cached_jar(spark.version, str(system.getProperty("java.class.path")), home)


def jar_path() -> str:
    """Where the jar is, for `spark.jars` of a session that is still to be started."""
    import pyspark

    return str(_cached_jar(pyspark.__version__, class_path_of_pyspark(), None))


def class_path_of_pyspark() -> str:
    """The jars of the PySpark that is installed."""
    import pyspark

    jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    return os.pathsep.join(sorted(map(str, jars)))


def _cached_jar(version: str, class_path: str, java_home: Path | None) -> Path:
    if PACKAGED.is_file():
        return PACKAGED
    sources = source_files()
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frazil"
    path = cache / f"frazil-spark-{version}-{digest}.jar"
    if not path.is_file():
        build(path, class_path=class_path, java_home=java_home)
    return path


def source_files() -> list[Path]:
    """The Java sources: beside this package in a wheel, at the top of a checkout."""
    for folder in (_PACKAGE / "java", _PACKAGE.parents[2] / "java" / "frazil"):
        if folder.is_dir():
            return sorted(folder.rglob("*.java"))
    raise Unsupported(
        "this installation of frazil has neither the jar nor the sources of its Spark classes; "
        "install it from a wheel or a checkout",
        feature="Spark SQL",
    )


def build(target: Path, *, class_path: str, java_home: Path | None = None) -> None:
    """Compile the sources against a class path into a jar."""
    javac = _javac(java_home)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder) / "arguments"
        names = "\n".join(f'"{path}"' for path in source_files())
        listing.write_text(f'-classpath "{class_path}"\n{names}\n')
        out = Path(folder) / "classes"
        command = [javac, "-nowarn", "-Xlint:none", "--release", "17", "-d", str(out)]
        compiler = subprocess.run([*command, f"@{listing}"], capture_output=True, text=True)
        if compiler.returncode:
            raise Unsupported(
                "Frazil's Spark classes do not compile against this Spark: "
                f"{compiler.stderr[:2000]}",
                feature="Spark SQL",
            )
        draft = Path(folder) / "frazil-spark.jar"
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(out.rglob("*.class")):
                archive.write(path, path.relative_to(out).as_posix())
        arriving = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(draft, arriving)
        arriving.replace(target)


def _javac(java_home: Path | None) -> str:
    for home in (java_home, os.environ.get("JAVA_HOME")):
        if home and (compiler := Path(home) / "bin" / "javac").is_file():
            return str(compiler)
    found_on_path = shutil.which("javac")
    if found_on_path:
        return found_on_path
    raise Unsupported(
        "Spark SQL on Frazil tables needs a JDK once, to compile a few Java classes: install one "
        "(for example openjdk-17-jdk-headless), or install frazil from a wheel that contains them",
        feature="Spark SQL",
    )
