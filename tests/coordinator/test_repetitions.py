"""Repetitions that are written as several match what they matched."""

from __future__ import annotations

import itertools
import re

import pytest

from groupstorm.coordinator.consumer.regexes import problem_of, split_repetitions

re2 = pytest.importorskip("re2", reason="needs google-re2")

EXPRESSIONS = [
    *("(a{1,3}b){1,3}", "(a{2}){3}", "((a{2}|b){1,2}b?){2,}", "a{3}", "(?:[ab]{2}){0,5}"),
    *("(a{0,2}){0,7}b", r"(\Qab\E{2}){3}", r"(?P<n>a{2}){3}b", r"([a\]]{2}\.?){3}", "(?i)(a{2}){3}"),
    *("x|(a{2}){4}|b", "(a{0}){5}", r"(\x{61}{2}){3}", "(a{2}?b){3}?", "(a{2}[[:alpha:]]){2,4}"),
]


@pytest.mark.parametrize("regex", EXPRESSIONS)
def test_the_same_texts_match(regex: str) -> None:
    split = split_repetitions(regex, most=4)
    assert split is not None
    whole, parts = re2.compile(regex), re2.compile(split)
    for length in range(11):
        for letters in itertools.product("ab", repeat=length):
            text = "".join(letters)
            assert bool(whole.fullmatch(text)) is bool(parts.fullmatch(text)), (split, text)


def test_no_nest_repeats_more_than_it_may() -> None:
    assert split_repetitions("(a{2}){3}", most=4) == "(a{2}){2}(a{2}){1}"
    assert split_repetitions("(a{1,50}.){1,30}", most=1_000) == "(a{1,50}.){1}(a{1,50}.){0,20}(a{1,50}.){0,9}"
    for regex in EXPRESSIONS:
        split = split_repetitions(regex, most=4)
        assert split is not None
        assert all(int(number) <= 4 for number in re.findall(r"(\d+)\}", split.replace(r"\x{61}", "")))


@pytest.mark.parametrize(
    ("regex", "is_taken"),
    [
        ("([a-z]{1,50}.){1,30}[a-z]+", True),
        ("(a{50}){50}", True),
        ("a{1001}", False),
        ("(a{2}){1001}", False),
        ("(a{2,1}){1000}", False),
    ],
)
def test_expressions_that_kafka_takes(regex: str, is_taken: bool) -> None:
    """A broker of Kafka 4.4.0 was asked for each."""
    assert (problem_of(regex) is None) is is_taken
