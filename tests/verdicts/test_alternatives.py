"""The advice on the alternatives to a deployment: the rules of a recommendation, against those in use."""

from __future__ import annotations

from groupstorm.verdicts.alternatives import AS_IT_IS, Alternative, advise_alternative
from tests.verdicts.test_recommendation import runs

SURGE = Alternative("more-surge", 1, "room for 4 more pods", {"max_surge": "100%"})
STICKY = Alternative("cooperative-sticky", 2, "two deployments", {})


def test_the_best_alternative_with_its_price_and_ranges() -> None:
    found = {
        AS_IT_IS: runs(900, 1000, 1100, deploy_s=1000, gap_s=8),
        "more-surge": runs(300, 310, 290, deploy_s=300, gap_s=1),
    }
    advice = advise_alternative(found, [SURGE], {})
    assert advice.chosen == "more-surge"
    assert advice.sentences == [
        "Recommendation: more-surge.",
        "It costs (medians of 3 seeds, with their range): longest single gap 1.0 s; un-owned time of a crash "
        "0 s; un-owned time of a deploy 300 s.",
        "Against the settings in use (as-it-is) it buys: longest single gap 8.0 s -> 1.0 s; un-owned time of "
        "a deploy 16 min 40 s -> 300 s. For that nothing gets noticeably worse.",
        "Its price: room for 4 more pods.",
    ]


def test_the_second_choice_is_named_if_it_buys_something() -> None:
    found = {
        AS_IT_IS: runs(900, 900, 900),
        "more-surge": runs(100, 100, 100),
        "cooperative-sticky": runs(400, 400, 400),
    }
    advice = advise_alternative(found, [STICKY, SURGE], {})
    assert advice.sentences[-1] == "If that is not possible: cooperative-sticky."
    found["cooperative-sticky"] = runs(890, 890, 890)
    assert advise_alternative(found, [STICKY, SURGE], {}).sentences[-1] == "Its price: room for 4 more pods."


def test_what_has_the_price_of_the_first_choice_is_no_second_one() -> None:
    """Every alternative to Recreate rolls: pods that cannot run side by side can take none of them."""
    roll = Alternative("rolling-update", 1, "side by side", {})
    found = {
        AS_IT_IS: runs(900, 900, 900),
        "rolling-update": runs(100, 100, 100),
        "cooperative-sticky": runs(400, 400, 400),
    }
    sticky = STICKY._replace(price=f"side by side; {STICKY.price}")
    assert advise_alternative(found, [roll, sticky], {}).sentences[-1] == "Its price: side by side."


def test_of_two_that_are_as_good_the_one_of_less_effort() -> None:
    found = {
        AS_IT_IS: runs(900, 1000, 1100),
        "cooperative-sticky": runs(290, 300, 310),
        "more-surge": runs(295, 305, 315),
    }
    advice = advise_alternative(found, [STICKY, SURGE], {})
    assert advice.chosen == "more-surge"
    assert advice.sentences[0] == (
        "Recommendation: more-surge. As good, but further from the settings in use: cooperative-sticky."
    )


def test_an_alternative_that_never_completes_is_not_ranked() -> None:
    found = {
        AS_IT_IS: runs(900, deploy_s=900),
        "more-surge": runs(300, deploy_s=300),
        "cooperative-sticky": runs(1, deploy_s=1),
    }
    advice = advise_alternative(found, [SURGE, STICKY], {"cooperative-sticky": "no progress for 600 s"})
    assert advice.chosen == "more-surge"
    assert "one seed: no spread is known" in advice.sentences[1]
    assert advice.sentences[-1] == (
        "Not ranked is cooperative-sticky: it never completes: no progress for 600 s."
    )


def test_no_recommendation_if_only_the_rollout_as_it_is_can_be_ranked() -> None:
    advice = advise_alternative({AS_IT_IS: runs(9), "more-surge": runs(3)}, [SURGE], {"more-surge": "stuck"})
    assert advice.chosen is None
    assert advice.sentences[0] == "No recommendation: there are no two that can be compared."


def test_the_only_one_that_can_be_ranked_beside_a_rollout_that_cannot_comes_first() -> None:
    found = {AS_IT_IS: runs(9), "more-surge": runs(300, deploy_s=300, gap_s=90)}
    advice = advise_alternative(found, [SURGE], {AS_IT_IS: "pods fence each other"})
    assert advice.chosen == "more-surge"
    first, cost, price, _ = advice.sentences
    assert first == "Recommendation: more-surge, before anything else."
    assert cost.startswith("It costs (one seed: no spread is known): longest single gap 90.0 s;")
    assert price == "Its price: room for 4 more pods."
