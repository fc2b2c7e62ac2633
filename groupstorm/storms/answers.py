"""What an answer says went wrong, where a response has an error per partition or per member."""

from __future__ import annotations

from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import LeaveGroupResponse, OffsetCommitResponse, Response


def first_error(response: OffsetCommitResponse) -> Error:
    """The first error of a commit's partitions."""
    for _, _, error in response.partitions:
        if error is not NO_ERROR:
            return error
    return NO_ERROR


def _leaving(response: LeaveGroupResponse) -> Error:
    if response.error is not NO_ERROR:
        return response.error
    return next((member.error for member in response.members), NO_ERROR)


def answer_of(response: Response) -> tuple[str, str | None]:
    """Kafka's names of the API that a response answers and of the error that it carries, if any."""
    kind = type(response)
    if isinstance(response, OffsetCommitResponse):
        error = first_error(response)
    elif isinstance(response, LeaveGroupResponse):
        error = _leaving(response)
    else:
        error = response.error
    return NAMES[kind, error]


class _Names(dict[tuple[type, Error], tuple[str, str | None]]):
    """The names by the type of the response and the error."""

    def __missing__(self, answer: tuple[type, Error]) -> tuple[str, str | None]:
        kind, error = answer
        names = self[answer] = (kind.__name__.removesuffix("Response"), error.name if error else None)
        return names


#: (type of the response, error) -> Kafka's names of the API and the error.
NAMES = _Names()
