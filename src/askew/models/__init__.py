"""Find, load and identify neural models by name. Other packages use the neural libraries through this one."""

import os

# Threads of torch that wait for each other keep their cores busy by default. For small models on shared cores that
# takes several times the CPU time. It must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from askew.models.encode import Loaded, load_classifier, load_model
from askew.models.find import MINILM, halving, identify, locate

__all__ = ["MINILM", "Loaded", "halving", "identify", "load_classifier", "load_model", "locate"]
