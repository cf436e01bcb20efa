"""The program of a token as the statements of a torch function, for all tokens of a segment of time at once.

Only the step of the state is a loop, and that is a helper's: `_scan` gives the state before every token and after the
last one. Everything before it and behind it is one operation for all tokens. A value is [batch, time, *head, *axes] or,
where it is constant in time, [*head, *axes]; a vector state has no head axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatchmethod

from recgen.algebra.operations import Accumulate, Contract, Leaf, Map, Op, Reduce, Row, Unrow, placeholder
from recgen.algebra.program import Carry, Node, Program, topological
from recgen.algebra.scan import log_decay_of

from .naming import Names, atom, is_constant
from .notes import Note
from .torch_lines import TorchWriter
from .torch_program import TorchText, is_position, is_scalar


def same_value(node: Node) -> bool:
    """A token's value inside and outside of its program is the same tensor."""
    return isinstance(node.op, (Row, Unrow))


class TokenText(TorchText):
    """Prints statements of the token program; time is an axis that every operation leaves alone."""

    def aligned(self, node: Node, like: Node) -> str:
        text = self.use(node)
        own, target = ([a for a in n.axes if a != "t"] for n in (node, like))
        if is_scalar(node) or own == target:
            return text
        head = "None, " if is_position(node) else ""
        return f"{atom(text)}[..., {head}{', '.join(':' if a in own else 'None' for a in target)}]"

    @singledispatchmethod
    def _text(self, op: Op, node: Node) -> str:
        return super()._text(op, node)

    @_text.register
    def _(self, op: Row, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Unrow, node: Node) -> str:
        return self.use(node.args[0])

    @_text.register
    def _(self, op: Accumulate, node: Node) -> str:
        return f"{atom(self.use(node.args[0]))}.sum((0, 1))"

    @_text.register
    def _(self, op: Contract, node: Node) -> str:
        return self._summed(node.args, node) if node.level == "chunk" else super()._text(op, node)

    @_text.register
    def _(self, op: Reduce, node: Node) -> str:
        """The sum over a product needs no tensor for the product."""
        (x,) = node.args
        factors = x.args
        product = isinstance(x.op, Map) and x.op.expr == placeholder(0) * placeholder(1)
        if product and x not in self.names and not any(is_scalar(f) or f.level == "head" for f in factors):
            return self._summed(factors, node)
        return super()._text(op, node)

    def _summed(self, factors: Iterable[Node], node: Node) -> str:
        letters = ["".join(a for a in n.axes if a != "t") for n in (*factors, node)]
        shapes = f"{', '.join(f'...{x}' for x in letters[:-1])} -> ...{letters[-1]}"
        return f'torch.einsum("{shapes}", {", ".join(map(self.use, factors))})'


class ScanWriter(TorchWriter):
    """Collects the lines of one function body."""

    def __init__(self, nodes: Iterable[Node], note: Note, like: str, known: Iterable[Node]) -> None:
        super().__init__(nodes, (), note, like)
        self.names = Names(self.nodes, known, taken=("size", "T", "part"), alias=same_value)
        self.text = TokenText(self.names, like)

    def steps(self, carry: Carry, reverse: bool = False) -> None:
        """Compute what the steps of a carried value need, take them, and name the values that others read."""
        log = log_decay_of(carry)
        self.compute([n for n in (log, carry.decay, carry.write) if n is not None])
        name, states = carry.start.leaf.name, f"{carry.start.leaf.name}_states"
        decay = () if log is None or carry.decay is None else (log, carry.decay)
        decays = [self.text.aligned(n, carry.start) for n in decay]
        one = is_constant(carry.write)
        write = f"torch.ones_like({self.text.like})" if one else self.text.aligned(carry.write, carry.start)
        call = ", ".join([name, *decays, write, "size"])
        line = f"{states} = _scan({call}{', reverse=True' if reverse else ''})"
        self.lines.append(self.note.mark(line, carry))
        before, after = f"{states}[:, :-1]", f"{states}[:, 1:]"
        for node, value in ((carry.start, after if reverse else before), (carry.end, after)):
            if node is not None and node in self.nodes and node not in self._known:
                origin = node if node is carry.end else carry
                self.lines.append(self.note.mark(f"{self.names[node]} = {value}", origin))
                self._known.add(node)


def segment_forward(program: Program, note: Note, like: str) -> ScanWriter:
    """o and the end of every carried value, from the inputs of a segment and the values carried in."""
    read = list(program.outputs.values())
    ends = [c.end for c in program.carries if c.end is not None]
    nodes = topological([*read, *_steps(program)], set(ends))
    writer = ScanWriter([n for n in nodes if not _unread_start(n, program, read, ends)], note, like, ends)
    for c in program.carries:
        writer.steps(c)
    writer.compute(read)
    return writer


def segment_backward(program: Program, adjoint: Program, note: Note, like: str) -> ScanWriter:
    """The gradients, from the inputs of a segment, the values carried in, and the cotangents."""
    grads = list(adjoint.outputs.values())
    ends = [c.end for c in program.carries if c.end is not None]
    needed = topological([*grads, *_steps(adjoint)], set(ends))
    forward = [c for c in program.carries if c.start in needed or c.end in needed]
    roots = [*(n for c in forward for n in c.hand_over), *_steps(adjoint), *grads]
    writer = ScanWriter(topological(roots, set(ends)), note, like, ends)
    for c in forward:
        writer.steps(c)
    for c in adjoint.carries:
        writer.steps(c, reverse=True)
    writer.compute(grads)
    return writer


def _steps(program: Program) -> list[Node]:
    return [n for c in program.carries for n in c.hand_over]


def _unread_start(n: Node, program: Program, read: list[Node], ends: list[Node]) -> bool:
    return isinstance(n.op, Leaf) and n.op.kind == "carry" and n not in topological(read, set(ends))
