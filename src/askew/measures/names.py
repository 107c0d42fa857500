"""Measures as Python objects: ``nDCG @ 10``, ``ARaB("tf", sign="abs") @ 10``, ``RR(rel=2) @ 10``.

Every measure that a text can name can also be made with ``Measure("NAME")``; these are the usual ones.
"""

from __future__ import annotations

from askew.core.measure import Measure

AP = Measure("AP")
ARaB = Measure("ARaB")
Bpref = Measure("Bpref")
ERR = Measure("ERR")
FaiRR = Measure("FaiRR")
Judged = Measure("Judged")
LexiconShare = Measure("LexiconShare")
NFaiRR = Measure("NFaiRR")
P = Measure("P")
R = Measure("R")
RBP = Measure("RBP")
RR = Measure("RR")
RaB = Measure("RaB")
Rprec = Measure("Rprec")
Success = Measure("Success")
nDCG = Measure("nDCG")  # noqa: N816 - its name in the field
