"""Official cases on a deployment that is not there, for those that no server here admits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.fake_deployment import FailPoint, FakeDeployment, FakeTarget
from tests.support.unified import Case, Observer, Run, admitted, perform_case, version_tuple

VERSIONS = ("6.0.5", "7.0.28", "4.4.2", "4.2.24", "4.2.0", "4.0.10", "3.6.0", "8.1.0", "8.2.1")
TOPOLOGIES = ("replicaset", "sharded", "single")


def fitting(case: Case) -> tuple[str, str]:
    """The first version and topology that a case admits."""
    return next(
        (version, topology)
        for topology in TOPOLOGIES
        for version in VERSIONS
        if admitted(case, version, topology)
    )


@dataclass
class FakeRun(Run):
    """One run of a case against a deployment that is not there."""

    deployment: FakeDeployment = field(default_factory=FakeDeployment)

    def _make_client(self, said: dict[str, Any]) -> Any:
        observer = Observer(said.get("ignoreCommandMonitoringEvents", ()))
        self.observers[said["id"]] = observer
        return FakeTarget(self.deployment, observed="observeEvents" in said)

    def check_events(self, expected: dict[str, Any]) -> None:
        observer = self.observers[expected["client"]]
        for command in self.deployment.commands:
            observer.saw(*command)
        super().check_events(expected)

    def fail_point(self, target: Any, client: str, **said: Any) -> None:
        point = said["failPoint"]
        self.deployment.fail_points.append(fail_point_of(point))


def fail_point_of(point: dict[str, Any]) -> FailPoint:
    """A configureFailPoint command as the fake has it."""
    data = point["data"]
    checked_out = point["configureFailPoint"] == "failGetMoreAfterCursorCheckout"
    code = None if data.get("closeConnection") else data["errorCode"]
    commands = ("getMore",) if checked_out else tuple(data["failCommands"])
    labels = tuple(data.get("errorLabels", ()))
    return FailPoint(commands, point["mode"]["times"], code, labels, checked_out)


def run_on_fake(case: Case) -> str:
    """Run a case on the fake that fits it; says which that was."""
    version, topology = fitting(case)
    deployment = FakeDeployment(version_tuple(version), topology)
    run = FakeRun("", watch=lambda target, *words, **given: target.watch(*words, **given))
    run.deployment = deployment
    perform_case(case, run)
    return f"fake {version} {topology}"
