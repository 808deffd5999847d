"""The paper's four datasets: what they are called, their labels, their sizes and their origin."""

from __future__ import annotations

from dataclasses import dataclass, field

from ulr.errors import ExperimentError
from ulr.experiments.distributions import (
    FULL,
    TITLES,
    CsvDistribution,
    Distribution,
    NewsgroupDistribution,
)

_ZHANG = (
    "by Xiang Zhang, Junbo Zhao and Yann LeCun ('Character-level Convolutional Networks for Text "
    "Classification', 2015)"
)


@dataclass(frozen=True)
class Dataset:
    """One dataset of the paper.

    Attributes
    ----------
    name
        What it is called in code, commands and folders.
    title
        What it is called in text.
    column
        What the paper's tables call it.
    official_rows
        How many documents its official splits have.
    distribution
        Where its files come from and how they are read.
    fingerprints
        Of the splits that are known as a whole: what `Documents.fingerprint` must be.
    """

    name: str
    title: str
    column: str
    official_rows: dict[str, int]
    distribution: Distribution = field(repr=False)
    fingerprints: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of its labels, in the official order."""
        return self.distribution.labels


DATASETS: dict[str, Dataset] = {
    each.name: each
    for each in (
        Dataset(
            "agnews",
            "AG News",
            "AG",
            {"test": 7_600, "train": 120_000},
            CsvDistribution(
                "ag_news_csv",
                "agnews",
                f"the AG News topic set {_ZHANG}, after Antonio Gulli's corpus of news articles",
                ("World", "Sports", "Business", "Sci/Tech"),
                columns={FULL: (1, 2), TITLES: (1,)},
                n_fields=3,
            ),
            {"test": "9dc69ce83ba8c8f5ec1fcd7e298c38acfff8ce829aa1e7407711f55462008298"},
        ),
        Dataset(
            "dbpedia14",
            "DBpedia",
            "DBP",
            {"test": 70_000, "train": 560_000},
            CsvDistribution(
                "dbpedia_csv",
                "dbpedia14",
                f"the DBpedia ontology set {_ZHANG}, after DBpedia 2014 (dbpedia.org)",
                (
                    "Company",
                    "EducationalInstitution",
                    "Artist",
                    "Athlete",
                    "OfficeHolder",
                    "MeanOfTransportation",
                    "Building",
                    "NaturalPlace",
                    "Village",
                    "Animal",
                    "Plant",
                    "Album",
                    "Film",
                    "WrittenWork",
                ),
                columns={FULL: (1, 2), TITLES: (1,)},
                n_fields=3,
            ),
        ),
        Dataset(
            "yahoo",
            "Yahoo Answers",
            "Yahoo",
            {"test": 60_000, "train": 1_400_000},
            CsvDistribution(
                "yahoo_answers_csv",
                "yahoo",
                f"the Yahoo! Answers topic set {_ZHANG}, after the Yahoo! Webscope corpus L6",
                (
                    "Society & Culture",
                    "Science & Mathematics",
                    "Health",
                    "Education & Reference",
                    "Computers & Internet",
                    "Sports",
                    "Business & Finance",
                    "Entertainment & Music",
                    "Family & Relationships",
                    "Politics & Government",
                ),
                columns={FULL: (1, 2, 3), TITLES: (1,)},
                n_fields=4,
                escaped_lines=True,
            ),
        ),
        Dataset(
            "20newsgroups",
            "20 Newsgroups",
            "20NG",
            {"test": 7_532, "train": 11_314},
            NewsgroupDistribution(
                "20news-bydate",
                "20newsgroups",
                "Jason Rennie's version by date of Ken Lang's 20 Newsgroups "
                "(qwone.com/~jason/20Newsgroups)",
                (
                    "alt.atheism",
                    "comp.graphics",
                    "comp.os.ms-windows.misc",
                    "comp.sys.ibm.pc.hardware",
                    "comp.sys.mac.hardware",
                    "comp.windows.x",
                    "misc.forsale",
                    "rec.autos",
                    "rec.motorcycles",
                    "rec.sport.baseball",
                    "rec.sport.hockey",
                    "sci.crypt",
                    "sci.electronics",
                    "sci.med",
                    "sci.space",
                    "soc.religion.christian",
                    "talk.politics.guns",
                    "talk.politics.mideast",
                    "talk.politics.misc",
                    "talk.religion.misc",
                ),
            ),
            {
                "test": "3e351bc99d5e08fb9cdefc19b90356156ce075db07ee3d7976f5563719623f8d",
                "train": "79f04dbee3f4b0f3c0c55adc96b27bbbd1713a71506fe95e8da47312771557fd",
            },
        ),
    )
}


def find_dataset(name: str) -> Dataset:
    """The dataset of a name.

    Raises
    ------
    ExperimentError
        When there is none.
    """
    if name not in DATASETS:
        raise ExperimentError(f"a dataset must be one of {', '.join(DATASETS)}; got {name!r}.")
    return DATASETS[name]
