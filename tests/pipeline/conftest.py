"""One Spark session for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from groupstorm.problems import InputError
from tests.needs import needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A JVM takes all memory that it may have, and keeps it until the run ends. With more, a machine of 24 GB has
#: had none left, since Kafka and browsers run beside it, and its system has ended the JVM.
_MEMORY_MIB = 1536


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    pytest.importorskip("pandas", reason="needs pandas: pip install 'groupstorm[spark]'")
    from groupstorm.pipeline.java import java_home
    from groupstorm.pipeline.session import spark_session

    with needed(InputError):
        java_home()
    with spark_session(driver_memory_mib=_MEMORY_MIB) as session:
        yield session


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """Both engines, one after the other; without Spark its half is skipped."""
    name: str = request.param
    if name == "spark":
        request.getfixturevalue("spark")
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A session of Spark takes more than ten seconds to start: every test that needs one is slow."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        on_spark = chosen is not None and chosen.params.get("engine") == "spark"
        if on_spark or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
