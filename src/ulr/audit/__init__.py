"""What a result depends on: every phrasing of the labels refined, and how far they agree.

No truth is needed; where there is one, it is only compared with at the end.
"""

from ulr.audit.findings import (
    AgainstTruth,
    Audit,
    Competition,
    LabelFinding,
    PhraseFinding,
    Recommendation,
    SetFinding,
    audit,
    compare_with_truth,
)
from ulr.audit.pictures import draw_audit
from ulr.audit.sweep import Sweep, run_sweep

__all__ = [
    "AgainstTruth",
    "Audit",
    "Competition",
    "LabelFinding",
    "PhraseFinding",
    "Recommendation",
    "SetFinding",
    "Sweep",
    "audit",
    "compare_with_truth",
    "draw_audit",
    "run_sweep",
]
