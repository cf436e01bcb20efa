"""What a person asks of a spec beyond its derivation: costs, pictures, comparisons, and a page of it all.

costs       operations and memory per token of each form, counted on the programs
pictures    the mask for sampled decays, and how the pairs of tokens are divided among chunks
page        one HTML file that needs nothing else
compare     what differs between two specs
lines       the emitted lines of one function beside the equations that they implement
"""
