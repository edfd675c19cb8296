"""The paper as a pure library: every equation is one function of values here.

No I/O, no clock, no logging, no async, no torch; randomness comes in as a `numpy.random.Generator`.
"""
