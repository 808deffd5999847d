"""Lists of labels that go by a name, for whoever needs many categories at hand."""

from __future__ import annotations

from ulr.errors import LabelError

NAMED_LISTS: dict[str, tuple[str, ...]] = {
    # The 30 most popular Stack Exchange sites, the paper's augmented categories, in its order.
    "stackexchange": (
        "math",
        "gis",
        "physics",
        "codereview",
        "stats",
        "unix",
        "english",
        "tex",
        "gaming",
        "apple",
        "scifi",
        "drupal",
        "ell",
        "meta",
        "electronics",
        "travel",
        "rpg",
        "dba",
        "magento",
        "webapps",
        "diy",
        "wordpress",
        "android",
        "security",
        "chemistry",
        "webmasters",
        "blender",
        "softwareengineering",
        "gamedev",
        "academia",
    ),
}


def named_list(name: str) -> tuple[str, ...]:
    """The labels of a named list.

    Raises
    ------
    LabelError
        When there is no list of that name.
    """
    if name not in NAMED_LISTS:
        raise LabelError(
            f"a named list must be one of {', '.join(sorted(NAMED_LISTS))}; got {name!r}."
        )
    return NAMED_LISTS[name]
