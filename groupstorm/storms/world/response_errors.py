"""The error of a response, also if the response has an error for each partition or each member."""

from __future__ import annotations

from typing import Final

from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import LeaveGroupResponse, OffsetCommitResponse, Response

#: These have an error for each partition or each member.
_OF_PARTS: Final = (OffsetCommitResponse, LeaveGroupResponse)


def first_error(response: OffsetCommitResponse) -> Error:
    """The first error of a commit's partitions."""
    for _, _, error in response.partitions:
        if error is not NO_ERROR:
            return error
    return NO_ERROR


def _leave_error(response: LeaveGroupResponse) -> Error:
    if response.error is not NO_ERROR:
        return response.error
    return next((member.error for member in response.members), NO_ERROR)


def api_and_error(response: Response) -> tuple[str, str | None]:
    """Kafka's names of the API that a response answers and of its error, if it has one."""
    if not isinstance(response, _OF_PARTS):
        error = response.error
    elif isinstance(response, OffsetCommitResponse):
        error = first_error(response)
    else:
        error = _leave_error(response)
    return API_AND_ERROR[type(response), error]


class _Names(dict[tuple[type, Error], tuple[str, str | None]]):
    """Kafka's names, made when they are first wanted."""

    def __missing__(self, response: tuple[type, Error]) -> tuple[str, str | None]:
        kind, error = response
        names = self[response] = (kind.__name__.removesuffix("Response"), error.name if error else None)
        return names


#: (type of the response, error) -> Kafka's names of the API and the error.
API_AND_ERROR = _Names()
