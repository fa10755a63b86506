"""The program of a process that compiles for ``compile_many``. It loads this package's native module and nothing else.

``_workers.py`` starts it, with the file of the native module as argument. Its standard input is a socket of the process that asks.
"""

import importlib.machinery
import importlib.util
import sys


def main(file: str) -> None:
    name = "warpcc_rtc._native"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.ExtensionFileLoader(name, file))
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    native.serve_compilations()


if __name__ == "__main__":
    main(sys.argv[1])
