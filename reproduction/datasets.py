"""The paper's four datasets: names, labels, sizes, and the layout of their official files."""

from __future__ import annotations

from dataclasses import dataclass, field

from ulr.errors import InputError

FULL, TITLES = "full", "titles"


class ReproductionError(InputError):
    """An experiment that cannot be run, or a dataset that cannot be read for it."""


@dataclass(frozen=True)
class Dataset:
    """One dataset of the paper."""

    name: str  # in code, commands and folders
    title: str  # in text
    column: str  # in the paper's tables
    labels: tuple[str, ...] = field(repr=False)  # in the official order
    official_rows: dict[str, int]  # of each split
    folder: str  # that the official archive unpacks to
    origin: str = field(repr=False)
    # For each variant, the columns of the official CSV files that make up a document; None for
    # 20 Newsgroups, which has one file per post.
    columns: dict[str, tuple[int, ...]] | None = None
    n_fields: int = 3  # columns, the class included
    escaped_lines: bool = False  # whether a line break is written as a backslash and an n
    fingerprints: dict[str, str] = field(default_factory=dict, repr=False)  # of whole splits

    @property
    def archive(self) -> str:
        """File name of the official archive."""
        return f"{self.folder}.tar.gz"


_ZHANG = (
    "by Xiang Zhang, Junbo Zhao and Yann LeCun ('Character-level Convolutional Networks for Text "
    "Classification', 2015)"
)
_TITLE_AND_TEXT = {FULL: (1, 2), TITLES: (1,)}


_DATASETS = (
    Dataset(
        "agnews",
        "AG News",
        "AG",
        ("World", "Sports", "Business", "Sci/Tech"),
        {"test": 7_600, "train": 120_000},
        "ag_news_csv",
        f"the AG News topic set {_ZHANG}, after Antonio Gulli's corpus of news articles",
        _TITLE_AND_TEXT,
        fingerprints={"test": "9dc69ce83ba8c8f5ec1fcd7e298c38acfff8ce829aa1e7407711f55462008298"},
    ),
    Dataset(
        "dbpedia14",
        "DBpedia",
        "DBP",
        tuple(
            "Company EducationalInstitution Artist Athlete OfficeHolder MeanOfTransportation "
            "Building NaturalPlace Village Animal Plant Album Film WrittenWork".split()
        ),
        {"test": 70_000, "train": 560_000},
        "dbpedia_csv",
        f"the DBpedia ontology set {_ZHANG}, after DBpedia 2014 (dbpedia.org)",
        _TITLE_AND_TEXT,
    ),
    Dataset(
        "yahoo",
        "Yahoo Answers",
        "Yahoo",
        tuple(
            "Society & Culture; Science & Mathematics; Health; Education & Reference; "
            "Computers & Internet; Sports; Business & Finance; Entertainment & Music; "
            "Family & Relationships; Politics & Government".split("; ")
        ),
        {"test": 60_000, "train": 1_400_000},
        "yahoo_answers_csv",
        f"the Yahoo! Answers topic set {_ZHANG}, after the Yahoo! Webscope corpus L6",
        {FULL: (1, 2, 3), TITLES: (1,)},
        n_fields=4,
        escaped_lines=True,
    ),
    Dataset(
        "20newsgroups",
        "20 Newsgroups",
        "20NG",
        tuple(
            "alt.atheism comp.graphics comp.os.ms-windows.misc comp.sys.ibm.pc.hardware "
            "comp.sys.mac.hardware comp.windows.x misc.forsale rec.autos rec.motorcycles "
            "rec.sport.baseball rec.sport.hockey sci.crypt sci.electronics sci.med sci.space "
            "soc.religion.christian talk.politics.guns talk.politics.mideast talk.politics.misc "
            "talk.religion.misc".split()
        ),
        {"test": 7_532, "train": 11_314},
        "20news-bydate",
        "Jason Rennie's version by date of Ken Lang's 20 Newsgroups "
        "(qwone.com/~jason/20Newsgroups)",
        fingerprints={
            "test": "3e351bc99d5e08fb9cdefc19b90356156ce075db07ee3d7976f5563719623f8d",
            "train": "79f04dbee3f4b0f3c0c55adc96b27bbbd1713a71506fe95e8da47312771557fd",
        },
    ),
)
DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _DATASETS}


def find_dataset(name: str) -> Dataset:
    """The dataset with a name; a `ReproductionError` for unknown names."""
    if name not in DATASETS:
        raise ReproductionError(f"dataset must be one of {', '.join(DATASETS)}; got {name!r}.")
    return DATASETS[name]
