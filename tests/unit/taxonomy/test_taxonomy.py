from arise.taxonomy import issue_tags, patterns
from arise.types import Capability


def test_tags_are_unique_and_complete() -> None:
    tags = issue_tags()
    assert len({tag.id for tag in tags}) == len(tags) > 0
    assert all(tag.definition and tag.not_for for tag in tags)
    assert {tag.usual_capability for tag in tags} == set(Capability)


def test_patterns_point_to_known_tags() -> None:
    catalogue = patterns()
    assert len({pattern.id for pattern in catalogue}) == len(catalogue) > 0
    assert {pattern.issue_tag for pattern in catalogue} <= {tag.id for tag in issue_tags()}
    assert all(pattern.when and pattern.good and pattern.bad and pattern.name for pattern in catalogue)
    assert {pattern.capability for pattern in catalogue} == set(Capability)
