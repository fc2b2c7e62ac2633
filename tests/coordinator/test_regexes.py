"""Regular expressions of subscriptions: what RE2/J 1.8 takes and refuses (asked of `Pattern.compile`)."""

from __future__ import annotations

import sys
from uuid import UUID

import pytest

from groupstorm.coordinator.consumer.regexes import problem_of, resolve
from groupstorm.coordinator.topics import Topic, Topics
from groupstorm.problems import InputError
from groupstorm.turns import at_once


@pytest.mark.parametrize(
    "regex",
    [
        *(
            "",
            "foo|bar",
            "a{1000}",
            "(?<n>a)",
            "(?P<n>a)",
            "(?P<n>a)(?<m>b)",
            r"\pN",
            r"\p{Greek}",
            "a{,2}",
            "a*?",
        ),
        *(
            r"\Q*\E",
            r"\Q(?P<n>",
            "(?i)A",
            "(?U)a*",
            "(?s).",
            r"\z",
            r"\A",
            "[[:alpha:]]",
            "[]a]",
            "[^]a]",
            "()",
        ),
        *(r"\x{e9}", "é+", r"\é", "[(?P<n>][(?P<n>]", r"\(?P<n>a(?P<n>b)", "a|*"[:2]),
    ],
)
def test_taken(regex: str) -> None:
    assert problem_of(regex) is None


@pytest.mark.parametrize(
    "regex",
    [
        *(
            "[",
            "(foo",
            "a)",
            "a{1001}",
            "a{2,1}",
            "x**",
            "a++",
            "+a",
            "*",
            "a|*",
            "(?",
            "(?x)a",
            "(?z)",
            "(?=x)",
        ),
        *(r"\C", r"\Z", r"\1", r"\8", r"\R", r"\K", r"\h", "[z-a]", "[[:nope:]]", r"\p{Nope}", "(?P=n)"),
        *("(?P<n>a)(?P<n>b)", "(?<n>a)(?P<n>b)", "(?P<>a)", "(?P<n", "\ud800"),
    ],
)
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
