"""`--require` of run and compare: who meets it, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.cli.printing import print_paragraph
from groupstorm.figures import Figures
from groupstorm.problems import CheckFailed
from groupstorm.verdicts.requirements import Requirement, parse
from groupstorm.wording import listed

Runs = Mapping[str, Sequence[Figures]]


def requirements_of(written: Sequence[str] | None) -> list[Requirement]:
    """Raises InputError."""
    return [parse(text) for text in written or ()]


def check_all_meet(runs: Mapping[str, Figures], required: Sequence[Requirement]) -> None:
    """Raise CheckFailed if a requirement is not met in enough of the runs."""
    unmet = [sentence for one in required for sentence in one.unmet_by(runs)]
    if unmet:
        raise CheckFailed("; ".join(unmet))


def check_variants_meet(variants: Runs, required: Sequence[Requirement], printing: bool) -> None:
    """Say which variants meet everything; raise CheckFailed if none does."""
    if not required:
        return
    unmet = {
        name: [sentence for one in required for sentence in _unmet(one, runs)]
        for name, runs in variants.items()
    }
    meeting = [name for name, sentences in unmet.items() if not sentences]
    whole = " and ".join(str(one) for one in required)
    if not meeting:
        lines = [f"  {name}: {'; '.join(sentences)}" for name, sentences in unmet.items()]
        raise CheckFailed("\n".join([f"no variant meets {whole}", *lines]))
    if printing:
        failing = [name for name in variants if name not in meeting]
        but = f", {listed(failing)} not" if failing else ""
        print()
        print_paragraph(f"{listed(meeting)} {'meets' if len(meeting) == 1 else 'meet'} {whole}{but}.")


def _unmet(requirement: Requirement, runs: Sequence[Figures]) -> list[str]:
    if len(runs) == 1:
        sentence = requirement.unmet(runs[0])
        return [] if sentence is None else [sentence]
    return requirement.unmet_by({f"run {number}": run for number, run in enumerate(runs, start=1)})
