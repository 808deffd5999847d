"""The paper's tables and label names as data, and readers of its datasets."""

from ulr.experiments.datasets import DATASETS, Dataset, find_dataset
from ulr.experiments.documents import Documents, read_documents
from ulr.experiments.paper import EXPERIMENTS, Experiment

__all__ = [
    "DATASETS",
    "EXPERIMENTS",
    "Dataset",
    "Documents",
    "Experiment",
    "find_dataset",
    "read_documents",
]
