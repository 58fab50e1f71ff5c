"""The code of Python functions, as a digest that is the same in every process.

Pickled functions are not: they hold the path and the lines of their file, and sets in any order. What counts here is
what a function does: its byte code, constants, names, default values, what it has closed over, and the globals that it
names, functions among them. Of a function that an installed module has, the name counts. White space and comments do
not; another minor version of Python has other byte code, and counts.
"""

import copyreg
import hashlib
import sys
import sysconfig
from collections.abc import Iterable
from functools import partial, reduce
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pyspark.serializers import CPickleSerializer

INSTALLED = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))


def code_digest(command: bytes) -> str:
    """Of a function as PySpark packs it, together with the type of its values."""
    function, *kinds = CPickleSerializer().loads(command)  # type: ignore[no-untyped-call]
    reading = _Reading()
    text = reading.function(function) if isinstance(function, FunctionType) else reading.text(function)
    return hashlib.sha256(f"{text} {kinds}".encode()).hexdigest()[:16]


class _Reading:
    """Texts of values; one that was read before is only named, for a function may name itself."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def text(self, value: Any) -> str:
        match value:
            case CodeType():
                return self._code(value)
            case tuple() | list():
                return f"{type(value).__name__} {self._texts(value)}"
            case set() | frozenset():
                return f"set {sorted(map(self.text, value))}"
            case dict():
                return f"dict {sorted((self.text(key), self.text(each)) for key, each in value.items())}"
            case None | bool() | int() | float() | complex() | str() | bytes():
                return repr(value)
            case property():
                return self._texts([value.fget, value.fset])
            case MethodType():
                return self._texts([value.__func__, value.__self__])
            case staticmethod() | classmethod():
                return self.text(value.__func__)
            case partial():
                return self._texts([value.func, value.args, value.keywords])
            case ModuleType():
                return f"module {value.__name__}"
        return self._object(value)

    def function(self, value: FunctionType) -> str:
        self._seen[id(value)] = value
        named = {name: value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__}
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return self._texts([value.__code__, value.__defaults__, value.__kwdefaults__, closed, named])

    def _object(self, value: Any) -> str:
        kind = type(value)
        name = f"{getattr(value, '__module__', kind.__module__)}.{getattr(value, '__qualname__', kind.__qualname__)}"
        if id(value) in self._seen or _is_installed(value):
            return name
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return f"{name} {self._texts([value.__bases__, self._own(value)])}"
        registered = copyreg.dispatch_table.get(kind)
        return f"{name} {self._reduced(registered(value) if registered else value.__reduce_ex__(4))}"

    def _own(self, kind: type) -> dict[str, Any]:
        had = vars(kind)
        return {key: had[key] for key in had if isinstance(had[key], FunctionType) or not key.startswith("__")}

    def _reduced(self, parts: Any) -> str:
        """What pickle would make the value of: a name, or what is called with which arguments, and what is put in."""
        if isinstance(parts, str):
            return parts
        made, arguments, state, items, pairs = (*parts, None, None, None)[:5]
        return self._texts([made, arguments, state, list(items or ()), list(pairs or ())])

    def _code(self, code: CodeType) -> str:
        return self._texts([code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars])

    def _texts(self, values: Iterable[Any]) -> str:
        return f"({', '.join(map(self.text, values))})"


def _names(code: CodeType) -> list[str]:
    """The names that the code looks up, also in functions inside of it."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


def _is_installed(value: Any) -> bool:
    """Whether an installed module has it under its name; modules of the user's own may change from run to run."""
    module, path = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not path or module == "__main__" or not (file is None or file.startswith(INSTALLED)):
        return False
    return reduce(lambda at, name: getattr(at, name, None), path.split("."), sys.modules.get(module)) is value
