"""The coordinator's image of the topics: what each update touches, and when expressions become stale."""

from __future__ import annotations

from uuid import UUID

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.topics import Topic, Topics

ONE, OTHER = UUID(int=1), UUID(int=2)


def test_what_an_update_touches() -> None:
    topics = Topics()
    assert topics.update({"a": Topic(ONE, 1), "b": Topic(OTHER, 2)}, []) == ["a", "b"]
    assert topics.update({"a": Topic(ONE, 1)}, []) == []
    assert topics.update({"a": Topic(ONE, 3)}, ["b", "never"]) == ["a", "b"]
    assert topics.by_name == {"a": Topic(ONE, 3)}
    assert topics.topic_id("b") is None
    assert topics.name(OTHER) is None


def test_a_coordinator_names_its_topics_by_their_ids() -> None:
    coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=str)
    coordinator.update_topics({"a": Topic(ONE, 1)}, [], 0)
    assert (coordinator.topic_name(ONE), coordinator.topic_name(OTHER)) == ("a", None)


def test_only_a_topic_that_is_created_makes_resolved_expressions_stale() -> None:
    topics = Topics()
    topics.update({}, [])
    assert (topics.version, topics.last_version_with_new_topics) == (1, 1), "the first image"
    topics.update({"a": Topic(ONE, 1)}, [])
    assert topics.last_version_with_new_topics == 2
    topics.update({"a": Topic(ONE, 3)}, [])
    topics.update({}, ["a"])
    assert (topics.version, topics.last_version_with_new_topics) == (4, 2)
    topics.update({"a": Topic(OTHER, 1)}, [])
    assert topics.last_version_with_new_topics == 5


def test_a_topic_that_is_created_and_removed_in_one_update_was_never_there() -> None:
    """MetadataDelta forgets it: nothing was created."""
    topics = Topics()
    topics.update({"a": Topic(ONE, 1)}, [])
    assert topics.update({"b": Topic(OTHER, 1)}, ["b"]) == []
    assert topics.last_version_with_new_topics == 1
    assert topics.by_name.keys() == {"a"}


def test_the_hash_of_topics_changes_with_what_members_are_assigned() -> None:
    topics = Topics()
    topics.update({"a": Topic(ONE, 1), "b": Topic(OTHER, 1)}, [])
    before = topics.hash_of(["a", "b"])
    assert before == topics.hash_of(["b", "a", "none"]) != 0
    assert topics.hash_of(["none"]) == 0
    for changed in (Topic(ONE, 2), Topic(UUID(int=3), 1), Topic(ONE, 1, (("rack",),))):
        topics.update({"a": changed}, [])
        assert topics.hash_of(["a", "b"]) != before
    topics.update({"a": Topic(ONE, 1)}, [])
    assert topics.hash_of(["a", "b"]) == before


def test_the_hash_of_topics_fits_into_kafkas_record() -> None:
    """ConsumerGroupMetadataValue.MetadataHash is an int64."""
    topics = Topics()
    names = [f"topic-{number}" for number in range(64)]
    topics.update({name: Topic(UUID(int=number), 1) for number, name in enumerate(names)}, [])
    hashes = [topics.hash_of([name]) for name in names]
    assert len(set(hashes)) == 64
    assert all(-(2**63) <= one < 2**63 for one in hashes)
    assert min(hashes) < -(2**62) < 2**62 < max(hashes)
