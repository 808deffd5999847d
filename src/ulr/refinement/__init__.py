"""The algorithms: vectors of documents and labels in, a `Refinement` out.

Knows arrays, never texts or files. Results are the same for any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.refinement.api import METHODS, choose_method, refine, refine_many, score_all
    from ulr.refinement.blocks import EXCLUDED, UNKNOWN
    from ulr.refinement.calibration import calibrate
    from ulr.refinement.contributions import vector_contributions, word_contributions
    from ulr.refinement.diagnosis import Diagnosis, LabelDiagnosis
    from ulr.refinement.distances import DISTANCES, mean_lead
    from ulr.refinement.result import LinearRule, Refinement, Rule, rule_from_arrays

__all__ = [
    "DISTANCES",
    "EXCLUDED",
    "METHODS",
    "UNKNOWN",
    "Diagnosis",
    "LabelDiagnosis",
    "LinearRule",
    "Refinement",
    "Rule",
    "calibrate",
    "check_positive",
    "choose_method",
    "mean_lead",
    "refine",
    "refine_many",
    "rule_from_arrays",
    "score_all",
    "vector_contributions",
    "word_contributions",
]

__getattr__ = lazy_names(
    __name__,
    api="METHODS choose_method refine refine_many score_all",
    blocks="EXCLUDED UNKNOWN",
    calibration="calibrate",
    contributions="vector_contributions word_contributions",
    diagnosis="Diagnosis LabelDiagnosis",
    distances="DISTANCES mean_lead",
    result="LinearRule Refinement Rule rule_from_arrays",
    validation="check_positive",
)
