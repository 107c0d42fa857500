"""Jobs for the tests of the process that measures runs: they have to be importable there."""

import os
import sys
import time
from pathlib import Path

from askew.core.errors import DataError


def double(opened, number):
    return 2 * number


def process(opened):
    return os.getpid()


def sleep(opened, seconds):
    time.sleep(seconds)
    return seconds


def wait_for(opened, path):
    while not Path(path).exists():
        time.sleep(0.02)


def refuse(opened):
    raise DataError("run x: not a run")


def fail(opened):
    raise ValueError("secretword")


def die(opened):
    os._exit(9)


def chatter(opened):
    sys.stdout.write("a library prints")
    sys.stdout.flush()
    return "quiet"
