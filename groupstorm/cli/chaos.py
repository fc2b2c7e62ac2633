"""`groupstorm chaos`: a service of one's own under a scenario's restarts, pauses and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groupstorm.chaos.command import ServiceCommand
from groupstorm.chaos.run import ChaosRun, Promises, run_chaos
from groupstorm.cli.options import (
    AllowWritesOption,
    ClientConfigOption,
    ScenarioArgument,
    SeedOption,
    SetOption,
    VariantOption,
    broker_kind,
    overrides,
)
from groupstorm.cli.output_options import JsonOption
from groupstorm.cli.printing import print_json, print_line, print_paragraph
from groupstorm.problems import CheckFailed, InputError
from groupstorm.report.progress import run_progress
from groupstorm.storms.runs.run_folder import folder_stem, free_folder
from groupstorm.storms.scenario.files import load
from groupstorm.testing.ledger.ledger import NOTICE_S

_OUTPUT, _STDOUT = "output", "stdout"


def chaos(
    scenario: ScenarioArgument,
    service: Annotated[
        str,
        typer.Option(
            "--service",
            metavar="COMMAND",
            help="The command of one instance. No shell runs it. It may have the placeholders "
            "{bootstrap_servers}, {group_id}, {topics}, {output_topic}, {instance}, {client_id} and "
            "{instance_id}; the same values are in the environment: GROUPSTORM_BOOTSTRAP_SERVERS, ...",
        ),
    ],
    on: Annotated[
        str,
        typer.Option("--on", metavar="BROKER", help="emulator, jvm, container[=IMAGE] or HOST:PORT."),
    ] = "emulator",
    instances: Annotated[
        int | None,
        typer.Option(
            "--instances", min=1, help="How many instances start. [default: the scenario's members]"
        ),
    ] = None,
    processed_in: Annotated[
        str,
        typer.Option(
            "--processed-in",
            metavar="output|stdout",
            help="Where the service says which record it has processed: records of the output topic, or "
            "lines of JSON on standard output.",
        ),
    ] = _OUTPUT,
    exactly_once: Annotated[
        bool, typer.Option("--exactly-once", help="Hold the service to exactly once (transactions).")
    ] = False,
    unordered: Annotated[
        bool,
        typer.Option("--unordered", help="The service may process the records of a partition in any order."),
    ] = False,
    notice_s: Annotated[
        float,
        typer.Option(
            "--notice",
            metavar="SECONDS",
            min=0,
            help="How long an instance that has lost a partition may begin records of it: until its next "
            "heartbeat, or as long as it works on a batch.",
        ),
    ] = NOTICE_S,
    variant: VariantOption = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write what the instances write into this folder."),
    ] = None,
    as_json: JsonOption = False,
    allow_writes: AllowWritesOption = False,
    client_config: ClientConfigOption = None,
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
