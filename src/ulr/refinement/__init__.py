"""The algorithms: vectors of documents and labels in, a `Refinement` out.

Knows arrays, never texts or files. Results are the same for any number of threads.
"""

from ulr.refinement.api import refine, refine_many, score, score_all
from ulr.refinement.blocks import EXCLUDED, UNFITTED, UNKNOWN, VectorSource
from ulr.refinement.calibration import calibrate
from ulr.refinement.diagnosis import Diagnosis
from ulr.refinement.distances import DISTANCES
from ulr.refinement.ensemble import refine_ensemble
from ulr.refinement.methods import METHODS, choose_method
from ulr.refinement.products import mean_lead
from ulr.refinement.result import OnPass, Pass, Refinement
from ulr.refinement.rule import Rule, rule_from_arrays

__all__ = [
    "DISTANCES",
    "EXCLUDED",
    "METHODS",
    "UNFITTED",
    "UNKNOWN",
    "Diagnosis",
    "OnPass",
    "Pass",
    "Refinement",
    "Rule",
    "VectorSource",
    "calibrate",
    "choose_method",
    "mean_lead",
    "refine",
    "refine_ensemble",
    "refine_many",
    "rule_from_arrays",
    "score",
    "score_all",
]
