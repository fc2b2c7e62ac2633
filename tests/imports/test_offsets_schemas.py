"""The tables of records against Kafka's own schemas, which its jar holds."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from groupstorm.clients.brokers.jars import KAFKA_VERSION, kafka_jars
from groupstorm.imports.offsets_topic import schemas
from groupstorm.imports.offsets_topic.schemas import KeyType
from tests.needs import needed


@pytest.fixture(scope="module")
def kafkas() -> dict[tuple[int, str], dict[str, Any]]:
    """(key type, "coordinator-key" or "coordinator-value") -> schema."""
    with needed():
        jar = kafka_jars() / f"kafka-group-coordinator-{KAFKA_VERSION}.jar"
    found: dict[tuple[int, str], dict[str, Any]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                found[schema["apiKey"], schema["type"]] = schema
    return found


def written(schema: dict[str, Any]) -> list[Any]:
    """A schema's fields as the table has them, without tagged fields that the table leaves out."""
    structures = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
    return _fields(schema["fields"], structures)


def _fields(fields: list[dict[str, Any]], structures: dict[str, Any]) -> list[Any]:
    return [_field(one, structures) for one in fields if "tag" not in one or one["name"] in TAGGED]


#: Tagged fields that the tables have.
TAGGED = {"topicId", "ClassicMemberMetadata"}


def _field(one: dict[str, Any], structures: dict[str, Any]) -> tuple[Any, ...]:
    kind = one["type"].removeprefix("[]")
    inside = one.get("fields") or structures.get(kind)
    since, _, until = one["versions"].partition("-")
    return (
        one["name"][0].lower() + one["name"][1:],
        _fields(inside, structures) if inside else kind,
        one["type"].startswith("[]"),
        int(since.rstrip("+")),
        None if "+" in since else int(until or since),
        one.get("tag"),
    )


def table(fields: Any, newest: int) -> list[Any]:
    return [
        (
            one.name,
            table(schemas._STRUCTURES[one.kind], newest) if one.kind in schemas._STRUCTURES else one.kind,
            one.array,
            one.since,
            None if one.until >= newest and one.until > 1 else one.until,
            one.tag,
        )
        for one in fields
    ]


VALUES = [key_type for key_type in schemas._VALUES if key_type is not KeyType.LEGACY_OFFSET_COMMIT]


@pytest.mark.slow  # it may fetch Kafka
@pytest.mark.parametrize("key_type", VALUES)
def test_values(key_type: KeyType, kafkas: dict[tuple[int, str], dict[str, Any]]) -> None:
    schema, ours = kafkas[key_type, "coordinator-value"], schemas._VALUES[key_type]
    assert table(ours.fields, ours.newest) == written(schema)
    assert ours.newest == int(schema["validVersions"].rpartition("-")[2])
    assert ours.newest == int(schema["flexibleVersions"].rstrip("+"))


@pytest.mark.slow  # it may fetch Kafka
@pytest.mark.parametrize("key_type", KeyType)
def test_keys(key_type: KeyType, kafkas: dict[tuple[int, str], dict[str, Any]]) -> None:
    schema = kafkas[key_type, "coordinator-key"]
    expected = [(one["name"][0].lower() + one["name"][1:], one["type"]) for one in schema["fields"]]
    assert [(one.name, one.kind) for one in schemas._KEYS[key_type]] == expected
