"""Neural models by name: found, loaded, and told apart by their weights. The one door to the neural libraries."""

from askew.models.classify import Loaded, load_classifier
from askew.models.encode import load_model
from askew.models.find import MINILM, identify, locate
from askew.models.halving import halving

__all__ = ["MINILM", "Loaded", "halving", "identify", "load_classifier", "load_model", "locate"]
