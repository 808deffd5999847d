"""Where people already work: annotation tools, spaCy, the Hugging Face hub, datasets and ONNX.

Each file serves one tool and imports its package when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.integrations.argilla import from_argilla, to_argilla
    from ulr.integrations.corrections import Corrections
    from ulr.integrations.datasets import label_dataset
    from ulr.integrations.doccano import from_doccano, to_doccano
    from ulr.integrations.hub import HubClassifier
    from ulr.integrations.label_studio import (
        from_label_studio,
        label_studio_config,
        to_label_studio,
    )
    from ulr.integrations.labelled import LabelledTexts
    from ulr.integrations.onnx import onnx_inputs, to_onnx

__all__ = [
    "Corrections",
    "HubClassifier",
    "LabelledTexts",
    "from_argilla",
    "from_doccano",
    "from_label_studio",
    "label_dataset",
    "label_studio_config",
    "onnx_inputs",
    "to_argilla",
    "to_doccano",
    "to_label_studio",
    "to_onnx",
]

__getattr__ = lazy_names(
    __name__,
    argilla="from_argilla to_argilla",
    corrections="Corrections",
    datasets="label_dataset",
    doccano="from_doccano to_doccano",
    hub="HubClassifier",
    label_studio="from_label_studio label_studio_config to_label_studio",
    labelled="LabelledTexts",
    onnx="onnx_inputs to_onnx",
)
