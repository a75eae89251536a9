"""Compile the Java classes with every warning as an error, and hold their lines to 120 characters.

Deprecated methods stay allowed: what one supported Spark deprecates, another still calls.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from frazil.spark.session.jar import class_path_of_pyspark, source_files

MAX_LINE = 120
LINT = "-Xlint:all,-deprecation,-path,-classfile,-processing,-serial"

sources = source_files()
long_lines = [
    f"{path}:{number}: {len(line)} characters; the limit is {MAX_LINE}"
    for path in sources
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    if len(line) > MAX_LINE
]
print("\n".join(long_lines), end="\n" if long_lines else "")
with tempfile.TemporaryDirectory() as folder:
    arguments = Path(folder) / "arguments"
    names = "\n".join(f'"{path}"' for path in sources)
    arguments.write_text(f'-classpath "{class_path_of_pyspark()}"\n{names}\n', encoding="utf-8")
    command = ["javac", "--release", "17", LINT, "-Werror", "-d", folder, f"@{arguments}"]
    compiled = subprocess.run(command, check=False)
sys.exit(bool(long_lines) or compiled.returncode)
