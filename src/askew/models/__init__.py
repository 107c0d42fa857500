"""Find, load and identify neural models by name. Other packages use the neural libraries through this one."""

from askew.models.classify import Loaded, load_classifier
from askew.models.encode import load_model
from askew.models.find import MINILM, identify, locate
from askew.models.halving import halving

__all__ = ["MINILM", "Loaded", "halving", "identify", "load_classifier", "load_model", "locate"]
