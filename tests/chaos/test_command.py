"""The command of a service: its placeholders, its environment, and what is refused."""

from __future__ import annotations

import pytest

from groupstorm.chaos.service import NAMES, ServiceCommand, Surroundings, told
from groupstorm.problems import InputError

SURROUNDINGS = Surroundings("127.0.0.1:9092", "billing", ("orders", "payments"), "output")
VALUES = told(SURROUNDINGS, 1, "service-1", "service-1")


def test_words_are_split_as_in_a_shell_and_placeholders_are_filled_in() -> None:
    command = ServiceCommand("env -u 'A B' {client_id} --topics={topics} {x1} {bootstrap_servers}{group_id}")
    assert command.words(VALUES) == [
        "env", "-u", "A B", "service-1", "--topics=orders,payments", "{x1}", "127.0.0.1:9092billing",
    ]  # fmt: skip


def test_every_value_is_in_the_environment() -> None:
    environment = ServiceCommand.environment(VALUES)
    ours = {name: value for name, value in environment.items() if name.startswith("GROUPSTORM_")}
    assert {f"GROUPSTORM_{name.upper()}" for name in NAMES} <= ours.keys()
    assert ours["GROUPSTORM_TOPICS"] == "orders,payments"
    assert ours["GROUPSTORM_INSTANCE"] == "1"
    assert "PATH" in environment


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "expected a command"),
        ("python 'x", "no closing quotation"),
        ("env {group}", r"{group}: no such placeholder: expected {bootstrap_servers}, "),
        ("there-is-no-such-program x", "there-is-no-such-program: there is no such program"),
    ],
)
def test_a_command_that_cannot_be_run(written: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ServiceCommand(written)
