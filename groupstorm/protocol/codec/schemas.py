"""kio's classes by API key and version, imported when they are first used.

Importing the schemas of a broker's APIs takes more than a second, and a client uses one version of each.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from groupstorm.protocol.codec.newer_versions import NEWER_VERSIONS, STREAMS_MODULE, STREAMS_VERSIONS
from groupstorm.protocol.codec.shape import KioType

NO_THROTTLE = datetime.timedelta(0)


@cache
def request_type(api_key: int, version: int) -> KioType:
    """kio's class of a request. Raises kio's KioIndexError for a version that Kafka does not have."""
    if (newer := _newer(api_key, version)) is not None:
        return newer[0]
    _import_package(api_key, version)
    return load_request_schema(api_key, version)


@cache
def response_types(api_key: int, version: int) -> ResponseTypes:
    """The classes of one response in one version."""
    if (newer := _newer(api_key, version)) is not None:
        return ResponseTypes(newer[1])
    _import_package(api_key, version)
    return ResponseTypes(load_response_schema(api_key, version))


def _newer(api_key: int, version: int) -> tuple[KioType, KioType] | None:
    """The classes that kio lacks; those of streams groups are made when they are first used."""
    if (api_key, version) in STREAMS_VERSIONS:
        versions: Mapping[tuple[int, int], tuple[KioType, KioType]] = import_module(STREAMS_MODULE).VERSIONS
        return versions[api_key, version]
    return NEWER_VERSIONS.get((api_key, version))


def _import_package(api_key: int, version: int) -> None:
    """Import the package before its modules.

    The package imports both of its modules. If one thread imports the request's module first and another one
    the response's, each waits for a lock that the other one holds, and Python raises an error in one of them.
    """
    name = api_key_map.get(api_key)
    if name is not None and version in schema_name_map[name]:
        import_module(f"kio.schema.{name}.v{version}")


class ResponseTypes:
    """Makes the structures of one response in one version.

    A handler names every field of every version, and the fields that this version lacks are dropped: one
    handler serves all versions. kio has one class per version and structure; structures keep
    their names from version to version.
    """

    def __init__(self, root: KioType) -> None:
        self.root = root
        self._module = sys.modules[root.__module__]
        self._classes: dict[str, tuple[KioType, frozenset[str]]] = {}

    def make(self, structure: str, /, **values: Any) -> Any:
        """One structure by its Kafka name. Raises TypeError if a field without default is not named."""
        if structure not in self._classes:
            structure_type = self.structure(structure)
            self._classes[structure] = structure_type, field_names(structure_type)
        structure_type, known = self._classes[structure]
        return structure_type(**{name: value for name, value in values.items() if name in known})

    def structure(self, name: str, /) -> KioType:
        """The class of a structure by its Kafka name."""
        return getattr(self._module, name)

    def response(self, **values: Any) -> Any:
        """The response itself; without ``throttle_time`` it is not throttled."""
        return self.make(self.root.__name__, **{"throttle_time": NO_THROTTLE, **values})


@cache
def field_names(structure_type: KioType) -> frozenset[str]:
    return frozenset(field.name for field in fields(structure_type))
