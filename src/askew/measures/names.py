"""Measures as Python objects: ``nDCG @ 10``, ``ARaB("tf", sign="abs") @ 10``, ``RR(rel=2) @ 10``.

These are the most common measures. Any other is made with ``Measure("NAME")``.
"""

from __future__ import annotations

from askew.core.measure import Measure

AP = Measure("AP")
ARaB = Measure("ARaB")
AWRF = Measure("AWRF")
Bpref = Measure("Bpref")
ERR = Measure("ERR")
EXP = Measure("EXP")
FaiRR = Measure("FaiRR")
Judged = Measure("Judged")
LexiconShare = Measure("LexiconShare")
NDKL = Measure("NDKL")
NFaiRR = Measure("NFaiRR")
P = Measure("P")
R = Measure("R")
RBP = Measure("RBP")
RR = Measure("RR")
RaB = Measure("RaB")
Rprec = Measure("Rprec")
Skew = Measure("Skew")
Success = Measure("Success")
TExFAIR = Measure("TExFAIR")
nDCG = Measure("nDCG")  # noqa: N816 - its name in the field
