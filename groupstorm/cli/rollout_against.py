"""Two versions of a manifest or a scenario, and the cost of the change: `groupstorm rollout --against`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from groupstorm.cli.failed_runs import require_invariants
from groupstorm.cli.printing import print_json, print_made
from groupstorm.problems import CheckFailed, InputError
from groupstorm.report.change_comment import Version, change_answer, change_comment, changed_settings
from groupstorm.report.progress import runs_progress
from groupstorm.report.rollout import Rollouts
from groupstorm.storms.deployments.manifests.objects import MANIFEST_BYTES_MAX
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.runs.several import orders_of, run_variants
from groupstorm.storms.scenario.files import parse
from groupstorm.storms.scenario.member_rules import STRATEGY, named_code
from groupstorm.verdicts.requirements import Requirement
from groupstorm.yaml_documents import parse_yaml_stream, read_text


class Text(NamedTuple):
    """A version of a file. ``source`` names it in messages."""

    source: str
    text: str


class Asked(NamedTuple):
    """One version as it will be run.

    ``step``: the kind of step that is a rollout; None in a scenario of one's own. ``changed``: settings that
    are not in the scenario's text.
    """

    scenario: str
    step: str | None
    findings: Sequence[str]
    changed: Mapping[str, Any]


def compare_versions(
    file: str,
    against: str,
    plan: Callable[[Text], Plan],
    as_yaml: Callable[[Plan], str],
    changed: Mapping[str, Any],
    seeds: range,
    required: Sequence[Requirement],
    command: str,
    as_json: bool,
) -> None:
    """Run both versions over the same seeds and print Markdown. Writes no file.

    ``against``: a file, or a revision of git that has ``file``. ``changed``: settings of --set. ``command``
    does it again.
    Raises InputError; CheckFailed if ``required`` is not met by the new version, or its rollout never ends.
    """
    if file == "-":
        raise InputError("-: --against compares files: name the manifest or the scenario")
    path = Path(file)
    new = Text(file, read_text(path, MANIFEST_BYTES_MAX))
    texts = [_version(path, against), new]
    with TemporaryDirectory(prefix="groupstorm-against-") as temporary, runs_progress() as progress:
        done = count(1)
        versions = []
        for number, text in enumerate(texts):
            asked = _asked(text, plan, as_yaml, changed)
            folder = Path(temporary) / str(number)
            folder.mkdir()
            scenario = folder / "scenario.yaml"
            scenario.write_text(asked.scenario, "utf-8")
            parsed = parse(asked.scenario, "yaml", text.source)
            orders = orders_of(str(scenario), [next(iter(parsed.variants))], seeds, asked.changed, folder)
            (runs,) = run_variants(orders, lambda _: progress(next(done), 2 * len(seeds))).values()
            require_invariants(runs)
            rollouts = None if asked.step is None else Rollouts.of(runs, asked.step)
            stuck = None if rollouts is None else rollouts.stuck
            takes_s = [] if rollouts is None else [one.seconds for one in rollouts.outcomes]
            settings = dict(runs[0].scenario.settings.written())
            figures = [run.figures for run in runs]
            versions.append(Version(text.source, settings, figures, takes_s, stuck, asked.findings))
    before, after = versions
    by_seed = {f"seed {seed}": figures for seed, figures in zip(seeds, after.figures, strict=True)}
    after = after._replace(unmet=[sentence for one in required for sentence in one.unmet_by(by_seed)])
    if as_json:
        print_json(_content(before, after))
    else:
        print_made(change_comment(f"{before.name} -> {after.name}", before, after, [command]))
    if after.stuck is not None:
        raise CheckFailed(f"{after.name}: this rollout never completes: {after.stuck}")
    if after.unmet:
        raise CheckFailed("; ".join(after.unmet))


def _version(path: Path, against: str) -> Text:
    """The old version: a file, or the same file in a revision. Raises InputError."""
    if Path(against).is_file():
        return Text(against, read_text(Path(against), MANIFEST_BYTES_MAX))
    if against.startswith("-"):
        raise InputError(f"--against {against}: expected a file or a revision of git")
    asked = ["git", "-C", str(path.parent), "show", f"{against}:./{path.name}"]
    try:
        shown = subprocess.run(asked, capture_output=True, check=False)
    except FileNotFoundError:
        raise InputError(f"--against {against}: no such file, and git is not on the path") from None
    if shown.returncode:
        said = shown.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(
            f"--against {against}: no such file, and git says: {said[-1] if said else 'nothing'}"
        )
    if len(shown.stdout) > MANIFEST_BYTES_MAX:
        raise InputError(f"--against {against}: {path.name} is larger than {MANIFEST_BYTES_MAX:,} bytes")
    try:
        return Text(f"{against}:{path}", shown.stdout.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"--against {against}: {path.name} is no UTF-8 there") from None


def _asked(
    text: Text, plan: Callable[[Text], Plan], as_yaml: Callable[[Plan], str], changed: Mapping[str, Any]
) -> Asked:
    documents = parse_yaml_stream(text.text, text.source)
    if len(documents) == 1 and isinstance(documents[0], Mapping) and "steps" in documents[0]:
        return Asked(text.text, None, (), changed)
    planned = plan(text)
    # a file must not name code: an assignor of the user's own goes with each run
    code = {STRATEGY: changed[STRATEGY]} if named_code(changed) is not None else {}
    findings = [*planned.warnings, *planned.alarms, *planned.findings]
    return Asked(as_yaml(planned), planned.step, findings, code)


def _content(before: Version, after: Version) -> dict[str, Any]:
    return {
        "answer": change_answer(before, after),
        "unmet": list(after.unmet),
        "settings": {
            name: {"before": old, "after": new}
            for name, (old, new) in changed_settings(before, after).items()
        },
        **{
            when: {
                "version": one.name,
                "never_completes": one.stuck,
                "takes_seconds": list(one.takes_s),
                "findings": list(one.findings),
                "figures": [figures.to_json() for figures in one.figures],
            }
            for when, one in (("before", before), ("after", after))
        },
    }
