"""`groupstorm chaos`: a service of one's own under a scenario's restarts, pauses and faults."""

from __future__ import annotations

from pathlib import Path

from groupstorm.chaos.run import ChaosRun, Promises, run_chaos
from groupstorm.chaos.service import ServiceCommand
from groupstorm.cli.options import ScenarioArgument, broker_kind, overrides
from groupstorm.cli.printing import print_json, print_line, print_paragraph
from groupstorm.problems import CheckFailed, InputError
from groupstorm.report.progress import run_progress
from groupstorm.storms.runs.run_folder import folder_stem, free_folder
from groupstorm.storms.scenario.files import load
from groupstorm.testing.ledger.ledger import NOTICE_S

_OUTPUT, _STDOUT = "output", "stdout"


def chaos(
    scenario: ScenarioArgument,
    service: str,
    on: str = "emulator",
    instances: int | None = None,
    processed_in: str = _OUTPUT,
    exactly_once: bool = False,
    unordered: bool = False,
    notice_s: float = NOTICE_S,
    variant: str | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
    out: Path | None = None,
    as_json: bool = False,
    allow_writes: bool = False,
    client_config: Path | None = None,
) -> None:
    """Put a service of your own, in any language, through a scenario: has it lost a record?

    The command writes numbered records into the scenario's topics, starts the instances of the service, and
    takes the steps in real time: SIGTERM, SIGKILL, SIGSTOP, scaling, faults of the brokers. Each instance has
    to read these topics as a member of the group, under the client.id that it is told. For every record that
    it has processed it writes one into the output topic: the number of the input as its key, the client.id in
    the header `by`. After the last step the group has to come to rest: without faults, every record
    committed. Then a ledger says which records were lost, processed twice, out of order or by two at once.

    Example: groupstorm chaos rolling-deploy --instances 3 --set partitions=6 --service 'python my_service.py'
    """
    kind = broker_kind(on, allow_writes, False, client_config)
    assert kind is not None
    if processed_in not in (_OUTPUT, _STDOUT):
        raise InputError(f"--processed-in {processed_in}: expected {_OUTPUT} or {_STDOUT}")
    if exactly_once and processed_in == _STDOUT:
        raise InputError(
            "--exactly-once: expected --processed-in output: lines on standard output are in no transaction"
        )
    command = ServiceCommand(service)
    changed = overrides(settings)
    if instances is not None:
        changed["members"] = instances
    resolved = load(scenario).resolve(variant, seed, changed)
    stem = folder_stem(
        resolved.name,
        str(resolved.seed),
        kind=f"chaos-on-{kind.name}",
        variants=variant or "",
        changed=changed,
    )
    folder = out or free_folder(stem, {})
    run = ChaosRun(
        resolved,
        on,
        command,
        Promises(exactly_once, not unordered, notice_s, processed_in == _STDOUT),
        folder,
        allow_writes,
        client_config,
    )
    with run_progress(f"{resolved.name} ({resolved.variant})", virtual=False) as progress:
        verdict = run_chaos(run, progress)
    if as_json:
        print_json(verdict.to_json())
    else:
        for line in verdict.lines():
            print_line(line) if line.startswith(" ") else print_paragraph(line)
        print_paragraph(f"What the instances wrote: {folder}")
    if not verdict.is_good:
        raise CheckFailed(f"{resolved.name} on {on}: the service did not pass")
