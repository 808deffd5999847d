"""A language model that knows words of some topics."""

import json
import re

TOPICS = {
    "sports": "striker goal match coach penalty team league cup",
    "business": "shares profit bank market loan investor trade prices",
    "weather": "rain storm snow wind cloud forecast cold sunshine",
}
PHRASES = {"sports": "football team", "business": "stock market", "weather": "heavy rain"}


def answer_well(prompt):
    """The topic whose words a document has, or a phrase of the topic that is asked about."""
    asked = re.search(r'Describe the category "(\w+)"', prompt)
    if asked:
        return json.dumps({"description": "", "phrases": [PHRASES[asked[1]]]})
    words = prompt.partition("Document:\n")[2].partition("\n\nWhat")[0].lower().split()
    count = {name: sum(map(words.count, own.split())) for name, own in TOPICS.items()}
    return json.dumps({"label": max(count, key=count.get)})
