"""What a generated operator would cost on a GPU that is not here: `recgen compile`.

jobs       one call of a module, forward and backward
process    processes of their own, since Triton either compiles or interprets
compile    what a call launches, compiled: registers, spills, shared memory, code
products   which matrix products are on tensor cores
addresses  which address products could overflow
traffic    what a call moves and computes, counted in Triton's interpreter
model      counts and a data sheet → a modelled time
report     all of it for one operator, and what is wrong with it
table      the report as text
versions   the same compilation with other versions of Triton
"""
