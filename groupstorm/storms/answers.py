"""What an answer says went wrong, where a response has an error per partition or per member."""

from __future__ import annotations

from typing import get_args

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroupResponse, OffsetCommitResponse, Response


def first_error(response: OffsetCommitResponse) -> Error:
    """The first error of a commit's partitions."""
    return next((error for _, _, error in response.partitions if error is not Error.NONE), Error.NONE)


def answer_of(response: Response) -> tuple[str, str | None]:
    """Kafka's names of the API that a response answers and of the error that it carries, if any."""
    if isinstance(response, OffsetCommitResponse):
        error = first_error(response)
    else:
        error = response.error
        if isinstance(response, LeaveGroupResponse) and error is Error.NONE:
            error = next((member.error for member in response.members), Error.NONE)
    return _API_NAMES[type(response)], None if error is Error.NONE else error.name


_API_NAMES = {kind: kind.__name__.removesuffix("Response") for kind in get_args(Response)}
