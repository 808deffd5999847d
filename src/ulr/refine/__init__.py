"""The mathematics: vectors of documents and labels in, a `Refinement` out.

Knows arrays and nothing of texts or files. Results are the same for any number of threads.
"""

from ulr.refine.calibration import calibrate
from ulr.refine.centred import Rule
from ulr.refine.distances import DISTANCES
from ulr.refine.door import METHODS, choose_method, nearest, refine, refine_many
from ulr.refine.ensemble import refine_ensemble
from ulr.refine.matching import match_one_to_one
from ulr.refine.points import Vectors
from ulr.refine.result import OnPass, Pass, Refinement

__all__ = [
    "DISTANCES",
    "METHODS",
    "OnPass",
    "Pass",
    "Refinement",
    "Rule",
    "Vectors",
    "calibrate",
    "choose_method",
    "match_one_to_one",
    "nearest",
    "refine",
    "refine_ensemble",
    "refine_many",
]
