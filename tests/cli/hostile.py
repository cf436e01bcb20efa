"""Specs that mean harm, or would do it by accident: what they hold, and what is said of them."""

from __future__ import annotations

DECAY = "inputs: {g: B T H}\ndecay: {type: gated, log: '%s'}\n"


def _decay(log: str) -> str:
    return "name: mine\n" + DECAY % log


def _input(name: str) -> str:
    return f"name: mine\ninputs: {{{name}: B T H}}\nkey_weight: exp(g)\n"


REFUSED: dict[str, tuple[str | bytes, str]] = {
    # YAML that builds, multiplies or repeats
    "a tag that runs code": ("name: !!python/object/apply:os.system ['touch ran']\n", "1:7: tags are not taken"),
    "a tag on a mapping": ("!!python/object:os.x\nname: mine\n", "1:1: tags are not taken"),
    "anchors that multiply": (
        "name: mine\na: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*b{i - 1}, *b{i - 1}]\n" for i in range(1, 60)),
        "2:4: anchors are not taken",
    ),
    "an alias of itself": ("name: mine\na: &a [*a]\n", "2:4: anchors are not taken"),
    "a merge key": ("name: mine\n<<: {title: a}\n", "2:1: there is no key '<<' here"),
    "a key twice": ("name: mine\ntitle: a\ntitle: b\n", "3:1: the key 'title' is already given"),
    "two documents": ("name: mine\n---\nname: yours\n", "2:1: a second document begins here"),
    "a directive": ("%TAG ! tag:x,2000:\n---\nname: mine\n", "2:1: directives are not taken"),
    "brackets 10,000 deep": ("name: mine\ntitle: " + "[" * 10000 + "]" * 10000, "2:1: the line is longer than"),
    "mappings 300 deep": ("name: mine\ntitle: " + "{a: " * 300 + "}" * 300, "2:52: nested more than 12 deep"),
    "100,000 keys": ("".join(f"k{i}: 1\n" for i in range(10**5)), "1:1: the file is larger than"),
    "10,000 parameters": (
        "name: mine\nparams:\n" + "".join(f"  p{i}: {{axes: H, init: 0}}\n" for i in range(10**4)),
        "1:1: the file is larger than",
    ),
    # files that are none
    "nothing": (b"", "1:1: a mapping of keys to values is needed here, this is nothing"),
    "binary": (b"\x7fELF\x02\x01\x01" + bytes(200), "1:1: a control or invisible character"),
    "NUL bytes": (b"name: mine\n" + bytes(200), "2:1: a NUL byte"),
    "100 MB": (b"name: mine\n" + b"#" * 10**8, "1:1: the file is larger than"),
    "UTF-16": ("name: mine\n".encode("utf-16"), "1:1: the file is not UTF-8 text"),
    "UTF-16 without a mark": ("name: mine\n".encode("utf-16-be"), "1:1: a NUL byte"),
    "UTF-32": ("name: mine\n".encode("utf-32"), "1:1: the file is not UTF-8 text"),
    "Latin-1": ("name: mine\ntitle: é\n".encode("latin-1"), "2:8: the file is not UTF-8 text"),
    # names
    "a name above the folder": ("name: ../mine\n", "1:7: '../mine' is no name"),
    "a name that is a path": ("name: /etc/mine\n", "1:7: '/etc/mine' is no name"),
    "a name with a backslash": ("name: a\\b\n", "1:7: 'a\\\\b' is no name"),
    "a name with a NUL": ('name: "a\\0b"\n', "1:7: this is to be one line of printable text"),
    "a name with a line break": ('name: "a\\nimport os"\n', "1:7: this is to be one line of printable text"),
    "a name that is an option": ("name: --out\n", "1:7: '--out' is no name"),
    "a name of 10,000 letters": ("name: " + "x" * 10000, "1:1: the line is longer than"),
    "a name of 41 letters": ("name: " + "x" * 41, "1:7: the name is longer than 40 characters"),
    "a dunder name": ("name: __init__\n", "1:7: names that begin with _ are kept"),
    "a keyword as a name": ("name: class\n", "1:7: class is a keyword of Python"),
    "a module's name": ("name: os\n", "1:7: a file called os.py would hide the module os"),
    "a file that Python runs": ("name: sitecustomize\n", "1:7: Python runs a file called sitecustomize.py by itself"),
    "a file that pytest runs": ("name: conftest\n", "1:7: pytest runs a file called conftest.py by itself"),
    "a device's name": ("name: nul\n", "1:7: nul is the name of a device on Windows"),
    "an input that is a path": (_input("../g"), "2:10: '../g' is no name"),
    "an input that is a keyword": (_input("class"), "2:10: class is a keyword of Python"),
    "an input that is a dunder": (_input("__class__"), "2:10: names that begin with _ are kept"),
    "an input that hides a builtin": (_input("print"), "2:10: print would hide Python's own print"),
    "an input that hides torch": (_input("torch"), "2:10: torch has a meaning of its own"),
    "an input that hides Triton": (_input("tl"), "2:10: tl has a meaning of its own"),
    "an input that hides a helper": (_input("_run"), "2:10: names that begin with _ are kept"),
    "an input that hides a pointer": (_input("S_ends"), "2:10: names that end in _ends are kept"),
    "an input that is a function": (_input("exp"), "2:10: exp is a function of the expression language"),
    # texts that would break out of the emitted file
    "a title of two lines": ('name: mine\ntitle: "a\\n\\"\\"\\"\\nimport os"\n', "2:8: this is to be one line"),
    "a title with a line separator": ("name: mine\ntitle: a\u2028import os\n", "2:9: a control or invisible character"),
    "a title that turns the line around": ("name: mine\ntitle: a\u202e\u2066b\n", "2:9: a control or invisible"),
    "an escaped bidi control": ('name: mine\ntitle: "a\\u202eb"\n', "2:8: this is to be one line of printable text"),
    "a citation with a form feed": ("name: mine\ncite: a\x0cb\n", "2:8: a control or invisible character"),
    # expressions
    "megabytes of expression": (_decay("-exp(" + " + ".join(["g"] * 500000) + ")"), "1:1: the file is larger than"),
    "10,000 parentheses": (_decay("(" * 10000 + "g" + ")" * 10000), "3:1: the line is longer than"),
    "100 parentheses": (_decay("(" * 100 + "g" + ")" * 100), "3:52: nested more than 24 deep"),
    "100 minus signs": (_decay("-" * 101 + "exp(g)"), "3:52: nested more than 24 deep"),
    "1,000 names": (_decay("-exp(" + "+".join(["g"] * 1000) + ")"), "3:28: the expression is longer than 2000"),
    "a tower of powers": (_decay("-9**9**9*exp(g)"), "3:32: the exponent is larger than 128"),
    "a tower of exponentials": (_decay("-exp(exp(exp(exp(9))))*exp(g)"), "3:37: this is not a finite real number in"),
    "a tower of an input": (_decay("-exp(exp(exp(exp(exp(g)))))"), "3:27: the log-decay is not finite where g = "),
    "a number that is infinite": (_decay("-1e999*exp(g)"), "3:29: this number is out of range"),
    "a number that is 0": (_decay("-1e-400*exp(g)"), "3:29: this number is out of range"),
    "no number": (_decay(".nan"), "3:28: attributes do not exist in this language"),
    "a number of 1,000 digits": (_decay("-" + "9" * 1000 + "*exp(g)"), "3:29: this number is out of range"),
    "a factorial": (_decay("-factorial(10**9)*exp(g)"), "3:29: there is no function factorial"),
    "code": (_decay('-__import__("os").system("touch ran")'), "3:40: strings do not exist in this language"),
    "an attribute": (_decay("-g.__class__"), "3:29: attributes do not exist in this language"),
    "a tower of sums": ("name: mine\nscale: ((((K+1)**9+1)**9+1)**9+1)**9\n", "2:30: powers within powers make"),
    "an exponent that is built up": (_decay("-((g**2)**64)**64"), "3:31: the exponents multiply to more than 128"),
    "a polynomial of many numbers": (
        _decay("-abs(" + "*".join(f"(g+{i}/7)" for i in range(1, 60)) + ")"),
        "3:302: the expression has more than 250",
    ),
    "values to compare": (_decay("-max(g,max(1,max(2,max(3,max(4,max(5,max(6,g)))))))"), "3:65: more than 12 values"),
    "a remainder of polynomials": (_decay("-abs(mod(g**9,h+1))"), "3:37: this argument of mod is too large"),
    "outer products of many vectors": (
        "name: mine\nfeature_map: " + "outer(" * 11 + "x" + ", x)" * 11,
        "2:14: this feature map has too many features",
    ),
    "a map of towers": (
        "name: mine\nfeature_map: " + "x * exp(" * 8 + "-x ** 2" + ")" * 8,
        "2:14: it has no finite value where x =",
    ),
    "a tiny eps": ("name: mine\nnormalizer: {kind: sum, eps: 1e-9999999999}\n", "2:30: this number is out of range"),
    # files of others
    "a family in another folder": ("name: mine\ndecay: {family: ../x.yaml}\n", "2:17: the path ../x.yaml leads out"),
    "a family anywhere": ("name: mine\ndecay: {family: /etc/passwd}\n", "2:17: the path /etc/passwd leads out"),
    "a family on a drive": ("name: mine\ndecay: {family: 'C:\\x.yaml'}\n", "2:17: the path C:\\x.yaml leads out"),
    "a family that is a pipe": ("name: mine\ndecay: {family: ./pipe.yaml}\n", "2:17: there is no file ./pipe.yaml"),
    "a family that is the spec": ("name: mine\ndecay: {family: ./spec.yaml}\n", "1:1: the key 'type' is missing"),
    "a family with a long name": ("name: mine\ndecay: {family: " + "x" * 290 + ".yaml}\n", "2:17: the family cannot"),
}
"""What it is → (the file's content, a part of the message with the place)."""

TITLES = [
    '""" + __import__("os").system("touch ran") + """',
    "''' {{ 7 * 7 }} {% raw %} {# #} \\N{BULLET} \\x00 \\u202e %s {0} $(touch ran) `touch ran` # --> \\",
    '\\"\\"\\"',
]
"""Titles that are texts like any other."""

SLOW = {
    "powers": _decay("-(exp(g) + g**2)**64"),
    "features of features": "name: mine\nfeature_map: " + "softmax(" * 4 + "x" + ")" * 4 + "\n",
    "inputs": "name: mine\ninputs:\n"
    + "".join(f"  g{i}: B T H\n" for i in range(50))
    + "decay: {type: gated, log: '-exp("
    + "+".join(f"g{i}" for i in range(50))
    + ")'}\n",
}
"""Specs that are right, and take long if they are not taken with care."""

ALIKE = [
    "name: mine\ninputs:\n"
    + "".join(f"  g{i}: B T H\n" for i in range(10))
    + "decay: {type: gated, log: '-exp("
    + " + ".join(f"{n} * g{i}" for i, n in enumerate(weights))
    + ")'}\n"
    for weights in (range(1, 11), range(11, 1, -1))
]
"""Two specs that differ, with inputs any of which could be any of the other's."""
