from __future__ import annotations

import pytest

from tests.oracle.build import Built, OracleUnavailable, build


@pytest.fixture(scope="session")
def built() -> Built:
    """Kafka's classes and the programs that ask them, where there are Java and Maven."""
    try:
        return build()
    except OracleUnavailable as problem:
        pytest.skip(str(problem))
