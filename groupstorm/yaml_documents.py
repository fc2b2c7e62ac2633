"""YAML and TOML that people write: checked for what their parsers let pass, with errors of one line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import yaml

from groupstorm.problems import InputError

#: A larger file was named by mistake: the largest preset has 3 KB.
BYTES_MAX = 1 << 20

#: Values of a document, each alias counted with all that it stands for. Aliases of aliases are exponential.
VALUES_MAX = 100_000

#: A dotted TOML key for whose parts tomllib takes memory with the square of their number.
_LONG_KEY = re.compile(r"(?:[\w\"'-]+[ \t]*\.[ \t]*){100}")


def read_document(path: Path) -> Any:
    """Return what a .toml file, or else a YAML file, holds. Raises InputError."""
    text = read_text(path)
    return parse_toml(text, str(path)) if path.suffix == ".toml" else parse_yaml(text, str(path))


def read_text(path: Path, bytes_max: int = BYTES_MAX) -> str:
    """The text of a file of at most ``bytes_max``. Raises InputError."""
    try:
        if path.is_dir() or path.is_char_device() or path.is_block_device():
            raise InputError(f"{path}: is a {'folder' if path.is_dir() else 'device'}: expected a file")
        with path.open("rb") as file:
            return text_of(file, str(path), bytes_max)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def text_of(file: IO[bytes], source: str, bytes_max: int = BYTES_MAX) -> str:
    """The text that is left in an opened file, of at most ``bytes_max``. Raises InputError."""
    content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InputError(f"{source}: larger than {bytes_max:,} bytes: expected a file that people write")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: not UTF-8: byte {error.start} is {content[error.start]:#04x}") from error


def parse_toml(text: str, source: str) -> Any:
    """A TOML document; tomllib itself refuses a key that is there twice. Raises InputError."""
    if _LONG_KEY.search(text):
        raise InputError(f"{source}: not TOML that people write: a key of more than 100 parts")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, and what a number or a date raises
        raise InputError(f"{source}: not TOML: {error}") from error
    except RecursionError:
        raise InputError(f"{source}: not TOML that people write: nested too deep") from None


def parse_yaml(text: str, source: str) -> Any:
    """A YAML document without duplicate keys, of at most `VALUES_MAX` values. Raises InputError."""
    with _yaml_problems(source):
        loader = _Loader(text)
        return _constructed(loader, loader.get_single_node(), source)


def parse_yaml_stream(text: str, source: str) -> list[Any]:
    """The documents of a file that separates them with `---`, each as `parse_yaml` reads one."""
    documents = []
    with _yaml_problems(source):
        loader = _Loader(text)
        while loader.check_node():
            documents.append(_constructed(loader, loader.get_node(), source))
    return documents


def _constructed(loader: _Loader, node: Any, source: str) -> Any:
    if node is None:
        return None
    if _count(node, {}) > VALUES_MAX:
        raise InputError(f"{source}: more than {VALUES_MAX:,} values, aliases counted for what they name")
    return loader.construct_document(node)


@contextmanager
def _yaml_problems(source: str) -> Iterator[None]:
    """Turn what PyYAML raises into an InputError."""
    try:
        yield
    except yaml.YAMLError as error:
        raise InputError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    except _DuplicateKey as duplicate:
        raise InputError(f"{source}: {duplicate}") from None
    except ValueError as error:  # what a number or a date raises
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source}: not YAML: {error}") from error
    except RecursionError:
        raise InputError(f"{source}: not YAML that people write: nested too deep") from None


class _DuplicateKey(Exception):
    pass


class _Loader(yaml.SafeLoader):
    """PyYAML takes the last of two values under one key, which YAML forbids, 1:30 for 90 and 010 for 8."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # has no types
        is_other = tag.endswith((":int", ":float")) and (":" in value or re.match("[-+]?0[0-7_]", value))
        return self.DEFAULT_SCALAR_TAG if is_other else tag

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                is_merge = key_node.tag == "tag:yaml.org,2002:merge"  # `<<`, which has no value of its own
                key = key_node.value if is_merge else self.construct_object(key_node)
                line = key_node.start_mark.line + 1
                if key in lines:
                    raise _DuplicateKey(
                        f"line {line}: {key_node.value}: a second value under this key, "
                        f"the first one is in line {lines[key]}"
                    )
                lines[key] = line
        return node


def _count(node: Any, known: dict[Any, int | None]) -> int:
    """Count the values that the document has if every alias is replaced by what it stands for."""
    if node in known:
        count = known[node]
        if count is None:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: an alias of something that it is part of")
        return count
    known[node] = None
    parts: list[Any] = []
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    known[node] = count = 1 + sum(_count(part, known) for part in parts)
    return count
