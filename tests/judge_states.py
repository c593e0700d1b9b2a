"""Judge functions in files, whose state depends on a value that another file holds."""

import importlib
import sys
from pathlib import Path

from distract.judging.functions.digest import identify
from distract.judging.functions.source import find

HEAD = """
import collections, datetime, enum, functools, importlib, pathlib, re, sys, types
from dataclasses import dataclass, field
import numpy as np
V = int(pathlib.Path(__file__).with_name("value.txt").read_text())
def score(a, b, model=None, **more): return 1
class Empty:
    def __call__(self, a, b): return 1
def hold(value):
    judge = Empty()
    judge.held = value
    return judge
class Model:
    def fit(self, *rows):
        self.coef_ = np.array(rows)
        return self
class Plain:
    def __init__(self, x): self.x = x
"""
HELPER = "import {0}\ndef judge(a, b): return {0}.size(a)"
STATES = {
    "a refitted model in a partial": "judge = functools.partial(score, model=Model().fit(1, V))",
    "a long array": "judge = hold(np.arange(5000))\njudge.held[2500] = V",
    "a strided array": "judge = hold(np.zeros((90, 90))[:, ::2])\njudge.held[50, 1] = V",
    "the shape of an array": "judge = hold(np.zeros((V, 2 // V)))",
    "the type of an array": "judge = hold(np.zeros(8, dtype=['?', '>f8', '<f8'][V]))",
    "an array of objects": "judge = hold(np.array([None, {}, V]))",
    "arrays in a dict": "judge = hold({'x': [np.arange(2000), np.arange(2000) * V]})",
    "a view of bytes": "judge = hold(memoryview(bytes([V]) * 2000))",
    "an object in an attribute": "judge = hold(Plain(V))",
    "an object deep in attributes": "judge = hold(Plain([{'k': types.SimpleNamespace(n=Plain(V))}]))",
    "slots": """
class Slotted:
    __slots__ = ("x",)
    __call__ = Empty.__call__
judge = Slotted()
judge.x = V""",
    "a field without repr": """
@dataclass
class Data:
    x: int = field(repr=False)
    __call__ = Empty.__call__
judge = Data(V)""",
    "an own repr": "Empty.__repr__ = lambda self: 'x'\njudge = hold(V)",
    "functions in a list": "def f(a): return 1\ndef g(a): return 2\njudge = hold([[None, f, g][V]])",
    "functions on one line": "judge = [None, lambda a, b: 1, lambda a, b: 2][V]",
    "functions on two lines": "judge = [None,\n    lambda a, b: 1,\n    lambda a, b: 2][V]",
    "a nested function on one line": "judge = [None, lambda a, b: (lambda: 1), (lambda a, b: lambda: 1)(1, 2)][V]"
    "\nif V == 2: judge = functools.partial(score, judge)",
    "a method bound to an object": "judge = hold(V).__call__",
    "a method in an attribute": "judge = hold(Plain(V).__init__)",
    "a closure": "def make(x): return lambda a, b: x\njudge = make([V])",
    "a default": "def judge(a, b, x=[V]): return x",
    "a keyword's default": "def judge(a, b, *, x=[V]): return x",
    "an attribute of a function": "def judge(a, b): return judge.x\njudge.x = V",
    "an attribute of a class": "Empty.x = V\njudge = Empty()",
    "a method of a class": "Empty.rate = [None, lambda self: 1, lambda self: 2][V]\njudge = Empty()",
    "a decorated function": """
def twice(n):
    def wrap(f):
        @functools.wraps(f)
        def g(a, b): return n * f(a, b)
        return g
    return wrap
@twice(V)
def judge(a, b): return 1""",
    "a cached function": "cached = functools.lru_cache(hold(V).__call__)\ndef judge(a, b): return cached(a, b)",
    "a global": "def judge(a, b): return V",
    "a global of a function called": "LIMIT = [V]\ndef limit(): return LIMIT\ndef judge(a, b): return limit()",
    "a global of a method": "class Own:\n    def __call__(self, a, b): return [V for _ in a]\njudge = Own()",
    "a global of an async function": "async def judge(a, b): return V",
    "a descriptor of a class": """
class Limit:
    def __get__(self, *owner): return self.x
Empty.limit = limit = Limit()
limit.x = V
judge = Empty()""",
    "a member of an enum of a library": "import ssl\njudge = hold([None, *ssl.TLSVersion][V])",
    "a method that the standard library makes": """
class Own:
    __call__ = functools.partialmethod(score, more=V)
judge = Own()""",
    "a partial as a static method": "Empty.rate = staticmethod(functools.partial(score, b=V))\njudge = Empty()",
    "the factory of a field": """
@dataclass
class Data:
    x: list = field(default_factory=[None, list, dict][V])
judge = hold(Data)""",
    "a context variable": "import contextvars\njudge = hold(contextvars.ContextVar('x', default=V))",
    "a module made by hand": "judge = hold(types.ModuleType('made'))\njudge.held.x = V",
    "a logger": "import logging\njudge = hold([logging.getLogger(__name__), V])",
    "a set": "judge = hold({'x', 'y', V})",
    "objects in a set": "judge = hold({Plain(1), Plain(2), Plain(V + 1)})",
    "an enum": "class Tone(enum.Enum):\n    A = 1\n    B = 2\njudge = hold(Tone(V))",
    "a pattern": "judge = hold(re.compile('x' * V))",
    "a path": "judge = hold(pathlib.Path(__file__).parent / ('x' * V))",
    "a place in a text": "judge = hold(str(pathlib.Path(__file__).parent) + 'x' * V)",
    "a date": "judge = hold(datetime.date(2024, 1, V))",
    "a list with attributes": "class Own(list): ...\njudge = hold(Own([1]))\njudge.held.x = V",
    "a set with attributes": "class Own(set): ...\njudge = hold(Own([1]))\njudge.held.x = V",
    "a deque": "judge = hold(collections.deque([V]))",
    "an ordered mapping": "judge = hold(collections.OrderedDict(a=V))",
    "the type of a number": "judge = hold([None, 1, 1.0][V])",
    "a long list": "judge = hold(list(range(5000)))\njudge.held[2500] = -V",
    "a cycle": "judge = hold([1, V])\njudge.held.append(judge)",
    "a random state": "import random\njudge = hold(random.Random(V))",
}
"""Texts of a judge whose state depends on V."""

LIBRARIES = {
    "a long tensor": "import torch\njudge = hold(torch.zeros(5000))\njudge.held[2500] = V",
    "a tensor in half precision": "import torch\njudge = hold(torch.full((2, 2), V / 4).bfloat16())",
    "a module of torch": """
import torch
judge = hold(torch.nn.Linear(2, 2))
judge.held.weight.data[:] = judge.held.bias.data[:] = V""",
    "a long frame": """
import pandas
judge = hold(pandas.DataFrame({"x": range(500), "y": ["t"] * 500}))
judge.held.loc[250, "y"] = str(V)""",
    "an arrow table": "import pyarrow as pa\njudge = hold(pa.table({'x': ['t' * V]}))",
    "a model of pydantic": """
import pydantic
class Own(pydantic.BaseModel):
    x: int = pydantic.Field(repr=False)
judge = hold(Own(x=V))""",
    "the address of a client": "import openai\njudge = hold(openai.OpenAI(api_key='k', base_url=f'http://h{V}/v1'))",
    "a default of a model of pydantic": """
import pydantic
class Own(pydantic.BaseModel):
    x: int = pydantic.Field(V, ge=0)
judge = hold([Own, pydantic.TypeAdapter(list[Own])])""",
    "a prompt in a client's class": """
import openai
class Own(openai.OpenAI):
    def ask(self): return self.prompt
judge = hold(Own(api_key='k'))
judge.held.prompt = V""",
}

IMPORTS: dict[str, tuple[str, dict[str, str]]] = {
    "a helper": (HELPER.format("helper"), {"helper.py": "def size(text): return V"}),
    "a helper by importlib": (
        "helper = importlib.import_module('helper')\ndef judge(a, b): return helper.size(a)",
        {"helper.py": "def size(text): return V"},
    ),
    "a helper imported by a call": (
        "def judge(a, b): return importlib.import_module('helper').size(a)",
        {"helper.py": "def size(text): return V"},
    ),
    "a helper of a package, relative to it": (
        "import pack.inner\ndef judge(a, b): return pack.inner.load().size(a)",
        {
            "pack/__init__.py": "",
            "pack/inner.py": "import importlib\ndef load(): return importlib.import_module('.deep', __package__)",
            "pack/deep.py": "def size(text): return V",
        },
    ),
    "a helper by __import__": (
        "def judge(a, b): return __import__('helper').size(a)",
        {"helper.py": "def size(text): return V"},
    ),
    "a helper in a parent folder": (
        "sys.path.insert(0, __file__.rsplit('/', 2)[0])\n" + HELPER.format("above"),
        {"../above.py": "def size(text): return V"},
    ),
    "a helper's own helper": (
        HELPER.format("helper"),
        {"deep.py": "def size(text): return V", "helper.py": "from deep import size"},
    ),
    "a value that a helper loads": (
        HELPER.format("helper"),
        {
            "helper.py": "from pathlib import Path\nX = Path(__file__).with_name('value.txt').read_text()\n"
            "def size(a): return X"
        },
    ),
    "a value of a helper that an attribute holds": (
        "import helper\njudge = hold(helper)",
        {"helper.py": "import pathlib\nX = pathlib.Path(__file__).with_name('value.txt').read_text()"},
    ),
    "a base class in another module": (
        "from helper import Base\nclass Own(Base): ...\njudge = Own()",
        {"helper.py": "class Base:\n    def __call__(self, a, b): return V"},
    ),
}


class Folders:
    """Judges in folders of their own, each as a process of its own would load it."""

    def __init__(self, root: Path) -> None:
        self.root, self.path, self.modules = root, [*sys.path], {*sys.modules}

    def digest(self, text: str, value: int, files: dict[str, str] | None = None, about: str = "") -> str:
        own = self.root / str(len([*self.root.iterdir()])) / "own"
        own.mkdir(parents=True)
        files = {name: content.replace("return V", f"return {value}") for name, content in (files or {}).items()}
        for name, content in {**files, "judge.py": about + HEAD + text, "value.txt": str(value)}.items():
            (own / name).parent.mkdir(exist_ok=True)
            (own / name).write_text(content)
        importlib.invalidate_caches()
        sys.path[:] = self.path
        for name in ("helper", "deep", "above", "pack", "pack.inner", "pack.deep"):
            sys.modules.pop(name, None)
        return identify(find(f"{own / 'judge.py'}:judge"))["code"]
