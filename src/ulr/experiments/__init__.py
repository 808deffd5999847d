"""The paper as data, its tables and label names, and the readers of its datasets."""

from ulr.experiments.datasets import DATASETS, Dataset, find_dataset
from ulr.experiments.documents import Documents, read_documents
from ulr.experiments.paper import EXPERIMENTS, Experiment, find_experiment

__all__ = [
    "DATASETS",
    "EXPERIMENTS",
    "Dataset",
    "Documents",
    "Experiment",
    "find_dataset",
    "find_experiment",
    "read_documents",
]
