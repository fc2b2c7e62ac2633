"""One Spark session for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from groupstorm.problems import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    pytest.importorskip("pandas", reason="needs pandas: pip install 'groupstorm[spark]'")
    from groupstorm.pipeline.java import java_home
    from groupstorm.pipeline.session import spark_session

    try:
        java_home()
    except InputError as missing:
        pytest.skip(str(missing))
    with spark_session() as session:
        yield session
