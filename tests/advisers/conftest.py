"""A language model that knows words of some topics, behind a real server."""

import pytest

from language_server import LanguageServer
from topics import answer_well


@pytest.fixture
def server():
    server = LanguageServer(answer_well)
    yield server
    server.stop()
