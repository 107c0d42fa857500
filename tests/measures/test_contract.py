"""Every measure that is plugged in keeps the contract offered to plugin authors."""

import pytest

from askew.plugins import registry
from askew.testing.contracts import check_measure_family


@pytest.mark.parametrize("name", registry.names("measure"))
def test_the_family_keeps_the_contract(name):
    check_measure_family(registry.load("measure", name))
