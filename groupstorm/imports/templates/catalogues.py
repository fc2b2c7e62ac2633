"""The catalogues that the tables make: one per kind of prefix, and one for messages without."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from groupstorm.imports.prefixes import Writer
from groupstorm.imports.template import Catalogue, Template
from groupstorm.imports.templates import (
    bare,
    broker_classic,
    broker_groups,
    broker_java,
    java_client,
    librdkafka,
    streams,
)

TABLES: Final[Mapping[Writer, tuple[Template, ...]]] = {
    Writer.BROKER: (*broker_classic.TEMPLATES, *broker_java.TEMPLATES, *broker_groups.TEMPLATES),
    Writer.JAVA: java_client.TEMPLATES,
    Writer.STREAMS: streams.TEMPLATES,
    Writer.RDKAFKA: librdkafka.TEMPLATES,
    Writer.BARE: bare.TEMPLATES,
}

CATALOGUES: Final[Mapping[Writer, Catalogue]] = {
    writer: Catalogue(templates) for writer, templates in TABLES.items()
}
BARE: Final = CATALOGUES[Writer.BARE]


def _beginnings(templates: tuple[Template, ...]) -> re.Pattern[str]:
    literals = {template.text.partition("{")[0] for template in templates}
    return re.compile("|".join(re.escape(one) for one in sorted(literals, key=lambda one: (-len(one), one))))


BARE_BEGINNING: Final = _beginnings(bare.TEMPLATES)
#: Kinds of lines that only coordinators write.
BROKER_KINDS: Final = frozenset(template.kind for template in TABLES[Writer.BROKER]) - {"noted"}
