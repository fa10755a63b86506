"""The program of a process that compiles for ``compile_many``. It loads this package's native module and nothing else.

``_workers.py`` starts it, with the file of the native module as argument. Its standard input is a socket of the process that asks.
"""

import sys

# Not importlib.util, whose own imports take as long as the rest of Python's start.
from importlib.machinery import ExtensionFileLoader, ModuleSpec


def main(file: str) -> None:
    name = "warpcc_rtc._native"
    loader = ExtensionFileLoader(name, file)
    native = loader.create_module(ModuleSpec(name, loader, origin=file))
    loader.exec_module(native)
    native.serve_compilations()


if __name__ == "__main__":
    main(sys.argv[1])
