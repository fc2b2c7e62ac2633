"""YAML and TOML that people write: what is refused, in one line that names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.problems import InputError
from groupstorm.yaml_documents import BYTES_MAX, VALUES_MAX, parse_toml, parse_yaml, read_document

TENFOLD = "a: &a [1,2,3,4,5,6,7,8,9,10]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcde", "bcdef", strict=True)
)


def refusal(text: str) -> str:
    with pytest.raises(InputError) as refused:
        parse_yaml(text, "storm.yaml")
    message = str(refused.value)
    assert message.startswith("storm.yaml: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a\nname: b\n", "line 2: name: a second value under this key, the first one is in line 1"),
        ("a:\n  members: 3\n  'members': 4\n", "line 3: members: a second value"),
        ("- {x: 1, x: 2}\n", "line 1: x: a second value"),
        ("yes: 1\ntrue: 2\n", "line 2: true: a second value"),
    ],
)
def test_a_second_value_under_a_key_is_refused_with_key_and_line(text: str, told: str) -> None:
    assert told in refusal(text)


def test_equal_keys_of_different_mappings_are_no_duplicates() -> None:
    assert parse_yaml("a: {x: 1}\nb: {x: 2}\n", "f") == {"a": {"x": 1}, "b": {"x": 2}}


def test_a_mapping_may_override_what_it_merges() -> None:
    assert parse_yaml("a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}\n", "f")["b"] == {"x": 2, "y": 1}


def test_a_time_with_colons_is_no_number() -> None:
    """YAML 1.1 reads 2:00 as 120: a step at two minutes came after 0.12 s."""
    assert parse_yaml("[2:00, 1:30.5, 12:34:56, 90, -1.5]", "f") == ["2:00", "1:30.5", "12:34:56", 90, -1.5]


def test_a_number_with_a_zero_in_front_is_none() -> None:
    """YAML 1.1 reads 010 as 8."""
    assert parse_yaml("[010, -010, 080, 0, 10, 0.5, 0x10]", "f") == ["010", "-010", "080", 0, 10, 0.5, 16]


def test_toml_refuses_a_second_value_itself() -> None:
    with pytest.raises(InputError, match="line 2"):
        parse_toml("name = 'a'\nname = 'b'\n", "storm.toml")


def test_aliases_are_counted_for_what_they_stand_for() -> None:
    assert len(TENFOLD) < 1000
    assert f"more than {VALUES_MAX:,} values" in refusal(TENFOLD)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &a [*a]\n", "an alias of something that it is part of"),
        ("[" * 50_000, "nested too deep"),
        ("when: 2020-13-45\n", "month must be in 1..12"),
        ("a: [\n", "not YAML"),
    ],
)
def test_what_no_program_can_read_is_one_line(text: str, told: str) -> None:
    assert told in refusal(text)


def test_an_empty_document_is_nothing() -> None:
    assert parse_yaml("", "f") is None


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "storm.yaml"
    file.write_bytes(b"#" * BYTES_MAX)
    assert read_document(file) is None
    file.write_bytes(b"#" * (BYTES_MAX + 1))
    with pytest.raises(InputError, match="larger than"):
        read_document(file)
    file.write_bytes(b"name: \xff")
    with pytest.raises(InputError, match="byte 6 is 0xff"):
        read_document(file)
    with pytest.raises(InputError, match="no such file"):
        read_document(tmp_path / "nowhere.yaml")


def test_a_folder_and_a_device_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder: expected a file"):
        read_document(tmp_path)
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"zero\.yaml: is a device: expected a file"):
        read_document(tmp_path / "zero.yaml")


def test_a_toml_key_of_very_many_parts_is_refused() -> None:
    """tomllib takes 0.4 GB for ten thousand parts, and four times as much for twice as many."""
    with pytest.raises(
        InputError, match=r"storm\.toml: not TOML that people write: a key of more than 100 parts"
    ):
        parse_toml("a" + ".a" * 10_000 + " = 1", "storm.toml")
    assert parse_toml("a" + " . 'a'" * 20 + " = 1.5", "storm.toml")
