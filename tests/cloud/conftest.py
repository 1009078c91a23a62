"""`pytest tests/cloud --cloud PLACE`: an account, real machines, real money. Never run by CI."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.cloud.account import Account
from tests.cloud.portal import PortalOnCloud

HERE = Path(__file__).parent
# For so long at most the suite has one machine, and two.
ONE_HOURS, TWO_HOURS = Decimal("0.5"), Decimal("0.4")
HOW = "needs an account: pytest tests/cloud --cloud aws|gcp|kubernetes/CONTEXT|slurm/CLUSTER"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; pytest knows them only if this folder is named on the command line."""
    group = parser.getgroup("cloud", "tests on real clouds (docs/explanation/clouds.md)")
    group.addoption("--cloud", default="", help="aws, gcp/REGION, kubernetes/CONTEXT, slurm/NAME")
    group.addoption("--credentials", default="", help="a file; default: where the cloud has it")
    group.addoption("--yes", action="store_true", help="start; without it the price is shown")
    group.addoption("--allow-exec", action="store_true", help="a kubeconfig may run programs")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Ignore this folder in runs of other tests: it does not even appear as skipped."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests without an account; allow an hour, because machines are slow to start."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(3600))
            if not config.getoption("--cloud"):
                item.add_marker(pytest.mark.skip(reason=HOW))


@pytest.fixture(scope="session")
def account(pytestconfig: pytest.Config) -> Account:
    """Provide the account on which the suite runs."""
    try:
        found = Account.parse(
            pytestconfig.getoption("--cloud"), pytestconfig.getoption("--credentials")
        )
        found.how_to_add()
    except ValueError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    return found


@pytest.fixture(scope="session")
def portal(account: Account, pytestconfig: pytest.Config) -> Iterator[PortalOnCloud]:
    """Start a portal on the account, once its price was shown and accepted.

    It leaves nothing behind.
    """
    portal = PortalOnCloud(account)
    try:
        portal.start()
        checked = portal.add_account(allow_exec=pytestconfig.getoption("--allow-exec"))
        price = price_of_all(portal, account, checked)
        capturing = pytestconfig.pluginmanager.getplugin("capturemanager")
        with capturing.global_and_fixture_disabled():
            pytestconfig.get_terminal_writer().line(f"\n{price}")
        if not pytestconfig.getoption("--yes"):
            pytest.exit("Nothing was started. Say --yes to start.", returncode=0)
        yield portal
    finally:
        left = portal.clear() if portal.numbers else set()
        if left:
            # Without its home they could not be terminated by name: it stays, and the portal runs.
            pytest.fail(
                f"LEFT ON {account.infra}: {', '.join(sorted(left))}. The portal at {portal.url} "
                f"runs on; its home is {portal.home.path}. Take them down on its page of clusters."
            )
        portal.close()


def price_of_all(portal: PortalOnCloud, account: Account, checked: str) -> str:
    """Describe what the suite costs at most. The run ends here if no machine is available."""
    usd, lines = Decimal(0), []
    for nodes, hours in ((1, ONE_HOURS), (2, TWO_HOURS)):
        plan = portal.plan(num_nodes=nodes, resources=account.resources, run="true")
        chosen = plan["chosen"]
        if chosen is None:
            reasons = "\n".join([plan["problem"], *plan["reasons"], checked])
            pytest.exit(f"{account.infra} gives no such machine.\n{reasons}", returncode=1)
        per_hour = Decimal(chosen["usd_per_hour"] or 0)
        machine = f"{nodes} x {chosen['instance_type'] or 'a node'} in {chosen['infra']}"
        lines.append(f"{machine}: US$ {per_hour} an hour, for at most {hours} h")
        usd += per_hour * hours
    return "\n".join([*lines, f"By SkyPilot's list prices at most US$ {usd:.2f} in all."])
