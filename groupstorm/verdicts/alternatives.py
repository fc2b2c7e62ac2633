"""Changes of settings, and the advice on a rollout: which of them to make, if any, and what that buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from groupstorm.verdicts.ranking import Runs, not_ranked, unfit_variants
from groupstorm.verdicts.recommendation import Defaults, Distance, choose, cost_of, recommendation

#: The name of the rollout without a change.
AS_IT_IS: Final = "as-it-is"


class Alternative(NamedTuple):
    """``settings`` that change together, over those in use, as one decision.

    ``effort``: from 1 on, a number in the clients' configuration; of two that are as good, the one of less
    effort is chosen, then the one whose number is nearer to that in use (``distance``). ``price``: what no
    figure says of its cost, and when it is wrong. Two of one ``knob`` exclude each other.
    """

    name: str
    effort: int
    price: str
    settings: Mapping[str, Any]
    knob: str = ""
    distance: float = 0.0


class Advice(NamedTuple):
    """``chosen``: the name of the alternative to take, or `AS_IT_IS`; None: there is no recommendation."""

    chosen: str | None
    sentences: Sequence[str]


def advise_alternative(
    runs: Runs,
    alternatives: Sequence[Alternative],
    never: Mapping[str, str],
    overload: str = "",
) -> Advice:
    """The advice on ``runs`` of the rollout as it is and of its alternatives.

    ``never``: alternatives whose rollout never completes, with the reason. ``overload``: a sentence on why
    the lag grows; it says more than that nothing can be compared.
    """
    completed = {name: each for name, each in runs.items() if name not in never}
    unfit = unfit_variants(runs)
    for name, why in never.items():
        unfit[name] = "; ".join([f"it never completes: {why}", *([unfit[name]] if name in unfit else [])])
    left_out = not_ranked(unfit)
    in_use = Defaults(
        "as-it-is",
        {AS_IT_IS: Distance(0, 0.0)} | {one.name: Distance(one.effort, 0.0) for one in alternatives},
        {one.name: f"Its price: {one.price}." for one in alternatives},
        called="the settings in use",
    )
    choice = choose(completed, in_use)
    fit = [name for name in completed if name not in unfit]
    if choice is None and AS_IT_IS in unfit and len(fit) == 1:
        first = f"Recommendation: {fit[0]}, before anything else."
        return Advice(fit[0], [first, cost_of(runs[fit[0]]), in_use.cautions[fit[0]], *left_out])
    if choice is None and overload and not fit:
        return Advice(None, [f"No recommendation before the group keeps up: {overload}"])
    if choice is None:
        return Advice(None, ["No recommendation: there are no two that can be compared.", *left_out])
    sentences = recommendation(completed, in_use)
    if choice.chosen not in (None, AS_IT_IS) and not choice.others:
        # what costs the same and more is not possible either
        price = {AS_IT_IS: "", **{one.name: one.price for one in alternatives}}
        others = [name for name in completed if price[choice.chosen] not in price[name]]
        second = choose({name: completed[name] for name in others}, in_use)
        if second is not None and second.chosen not in (None, AS_IT_IS):
            sentences.append(f"If that is not possible: {second.chosen}.")
    return Advice(choice.chosen, [*sentences, *left_out])
