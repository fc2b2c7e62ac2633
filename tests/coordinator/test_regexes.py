"""Regular expressions of subscriptions: what RE2/J 1.8 takes and refuses (asked of `Pattern.compile`), and
repetitions that are written as several match what they matched."""

from __future__ import annotations

import itertools
import re
import sys
from uuid import UUID

import pytest

from groupstorm.coordinator.consumer.regexes import problem_of, resolve, split_repetitions
from groupstorm.coordinator.topics import Topic, Topics
from groupstorm.problems import InputError
from groupstorm.turns import at_once


@pytest.mark.parametrize(
    "regex",
    [
        *("", "foo|bar", "a{1000}", "(?<n>a)", "(?P<n>a)", "(?P<n>a)(?<m>b)", r"\pN", r"\p{Greek}", "a{,2}",
          "a*?"),
        *(r"\Q*\E", r"\Q(?P<n>", "(?i)A", "(?U)a*", "(?s).", r"\z", r"\A", "[[:alpha:]]", "[]a]", "[^]a]",
          "()"),
        *(r"\x{e9}", "é+", r"\é", "[(?P<n>][(?P<n>]", r"\(?P<n>a(?P<n>b)", "a|*"[:2]),
    ],
)  # fmt: skip
def test_taken(regex: str) -> None:
    assert problem_of(regex) is None


@pytest.mark.parametrize(
    "regex",
    [
        *("[", "(foo", "a)", "a{1001}", "a{2,1}", "x**", "a++", "+a", "*", "a|*", "(?", "(?x)a", "(?z)",
          "(?=x)"),
        *(r"\C", r"\Z", r"\1", r"\8", r"\R", r"\K", r"\h", "[z-a]", "[[:nope:]]", r"\p{Nope}", "(?P=n)"),
        *("(?P<n>a)(?P<n>b)", "(?<n>a)(?P<n>b)", "(?P<>a)", "(?P<n", "\ud800"),
    ],
)  # fmt: skip
def test_refused(regex: str) -> None:
    assert problem_of(regex)


@pytest.mark.parametrize(
    ("regex", "description"),
    [
        ("[a", "missing closing ]"),
        ("(a", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2000}", "invalid repeat count"),
        ("[b-a]", "invalid character class range"),
        ("a\\", "trailing backslash at end of expression"),
        (r"(a)\1", "invalid escape sequence"),
        (r"\C", "invalid escape sequence"),
        (r"\x{", "invalid escape sequence"),
        ("(?!a)b", "invalid or unsupported Perl syntax"),
        ("(?<=a)b", "invalid named capture"),
        ("(?P<>a)", "invalid named capture"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)
def test_refusals_are_described_as_by_re2j(regex: str, description: str) -> None:
    assert problem_of(regex) == description


def test_whole_names_are_matched() -> None:
    topics = Topics()
    topics.update(
        {name: Topic(UUID(int=n), 1) for n, name in enumerate(("foo", "foo-1", "FOO", "bar"), 1)}, ()
    )
    found = at_once(resolve(topics, ["foo.*", "(?i)foo", "oo", r"\Qfoo-\E\d", "["], 7))
    assert {regex: sorted(one.topics) for regex, one in found.items()} == {
        "foo.*": ["foo", "foo-1"],
        "(?i)foo": ["FOO", "foo"],
        "oo": [],
        r"\Qfoo-\E\d": ["foo-1"],
        "[": [],
    }
    assert {(one.version, one.resolved_at_ms) for one in found.values()} == {(1, 7)}


def test_a_refusal_is_said_to_the_member_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """RE2 would write it to standard error as well."""
    assert problem_of("(never asked before") == "missing closing )"
    assert capfd.readouterr().err == ""


def test_without_re2_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)  # importing it raises an ImportError
    with pytest.raises(InputError, match=r"^regular expression 'never-seen-\.\*': needs google-re2: "):
        problem_of("never-seen-.*")


EXPRESSIONS = [
    *("(a{1,3}b){1,3}", "(a{2}){3}", "((a{2}|b){1,2}b?){2,}", "a{3}", "(?:[ab]{2}){0,5}"),
    *("(a{0,2}){0,7}b", r"(\Qab\E{2}){3}", r"(?P<n>a{2}){3}b", r"([a\]]{2}\.?){3}", "(?i)(a{2}){3}"),
    *("x|(a{2}){4}|b", "(a{0}){5}", r"(\x{61}{2}){3}", "(a{2}?b){3}?", "(a{2}[[:alpha:]]){2,4}"),
]


@pytest.mark.parametrize("regex", EXPRESSIONS)
def test_the_same_texts_match(regex: str) -> None:
    re2 = pytest.importorskip("re2", reason="needs google-re2")
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
