from __future__ import annotations

import pytest

from tests.needs import needed
from tests.oracle.build import Built, build


@pytest.fixture(scope="session")
def built() -> Built:
    """Kafka's classes and the programs that ask them, where there are Java and Maven."""
    with needed():
        return build()
