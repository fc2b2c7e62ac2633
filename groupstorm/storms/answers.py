"""What an answer says went wrong, where a response has an error per partition or per member."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroupResponse, OffsetCommitResponse, Response


def first_error(response: OffsetCommitResponse) -> Error:
    """The first error of a commit's partitions."""
    return next((error for _, _, error in response.partitions if error is not Error.NONE), Error.NONE)


def answer_error(response: Response) -> str | None:
    """Kafka's name of the error that a response carries; None where there is none."""
    if isinstance(response, OffsetCommitResponse):
        error = first_error(response)
    else:
        error = response.error
        if error is Error.NONE and isinstance(response, LeaveGroupResponse):
            error = next((member.error for member in response.members), Error.NONE)
    return None if error is Error.NONE else error.name
