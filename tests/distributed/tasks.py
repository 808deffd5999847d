"""Functions that workers run in tests."""

import os
import signal
import time
from pathlib import Path


def square(item, *common):
    return item * item + sum(common)


def wait_and_return(item):
    time.sleep(item)
    return item


def wait_and_mark(item, folder):
    """Leave a file when the work is done."""
    time.sleep(0.1)
    (Path(folder) / str(item)).touch()
    return item


def refuse(item):
    raise ValueError(f"{item} is refused")


def die_once(item, folder):
    """Kill the worker when an item is met for the first time."""
    marker = Path(folder) / str(item)
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def die_of_poison(item):
    if item == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return item


def process_id(item):
    return os.getpid()
