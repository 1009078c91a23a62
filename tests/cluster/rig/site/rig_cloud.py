"""The rig as a cloud with prices and spot machines, and partitions that can run out of machines.

`infra: slurm/rig` is SkyPilot's own Slurm, which costs nothing; `infra: rig/rig` is the same
machines for money: 0.05 $ a CPU and 0.005 $ a GB an hour, a fifth more in the partition `spare`,
spot at three tenths. It is outside of SkyPilot, as any cloud that a user has written would be.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any, ClassVar

import sky.catalog
from sky import clouds, provision
from sky.catalog import slurm_catalog
from sky.clouds import slurm
from sky.provision import slurm as slurm_provisioner
from sky.setup_files import dependencies
from sky.utils import registry

NAME = "rig"
USD_PER_CPU_HOUR, USD_PER_GB_HOUR = 0.05, 0.005
SPOT_FACTOR = 0.3
PARTITION_FACTORS = {"spare": 1.2}
# tests/cluster/rig/places.py knows them as RUN and FAULTS.
RUN = Path("/run/rig")
FAULTS = RUN / "faults"
KEYS = RUN / "authorized_keys"
TEMPLATE = RUN / "rig-cluster.yml.j2"


class Rig(slurm.Slurm):
    """Slurm, with a price and with spot machines."""

    _REPR = "Rig"
    _CLOUD_UNSUPPORTED_FEATURES: ClassVar[dict[Any, str]] = {
        feature: reason
        for feature, reason in slurm.Slurm._CLOUD_UNSUPPORTED_FEATURES.items()
        if feature is not clouds.CloudImplementationFeatures.SPOT_INSTANCE
    }

    def is_same_cloud(self, other: clouds.Cloud) -> bool:
        return isinstance(other, Rig)

    def instance_type_to_hourly_cost(
        self,
        instance_type: str,
        use_spot: bool,
        region: str | None = None,
        zone: str | None = None,
    ) -> float:
        cpus, memory_gb = self.get_vcpus_mem_from_instance_type(instance_type)
        usd = USD_PER_CPU_HOUR * (cpus or 0) + USD_PER_GB_HOUR * (memory_gb or 0)
        usd *= PARTITION_FACTORS.get(zone or "", 1.0)
        return usd * (SPOT_FACTOR if use_spot else 1.0)

    def _get_feasible_launchable_resources(self, resources: Any) -> Any:
        requested = resources.copy(cloud=slurm.Slurm(), use_spot=False)
        feasible = super()._get_feasible_launchable_resources(requested)
        feasible.resources_list[:] = [
            each.copy(cloud=Rig(), use_spot=resources.use_spot) for each in feasible.resources_list
        ]
        return feasible


def run_instances(region: str, cluster_name: str, name_on_cloud: str, config: Any) -> Any:
    """Provision on Slurm, unless a file of the partition's name in FAULTS declares it full."""
    partition = str(config.provider_config.get("partition"))
    if (FAULTS / partition).exists():
        raise RuntimeError(f"No capacity in partition {partition}: the rig was set to have none.")
    return slurm_provisioner.run_instances(region, cluster_name, name_on_cloud, config)


def run_instances_with_key(region: str, cluster_name: str, name_on_cloud: str, config: Any) -> Any:
    """Let the user's key in first, as other clouds do: SkyPilot waits until it opens."""
    public = Path(config.authentication_config["ssh_private_key"]).expanduser().with_suffix(".pub")
    with KEYS.open("a") as keys:
        keys.write(public.read_text().rstrip() + "\n")
    return run_instances(region, cluster_name, name_on_cloud, config)


def template_of(task: Any, to_provision: Any, **_: Any) -> provision.TemplateSpec:
    """Write SkyPilot's own template for Slurm, adapted to the cloud `rig`.

    Nodes install SkyPilot's wheel, which has no extra `rig`.
    """
    stock = Path(sky.__file__).parent / "templates" / "slurm-ray.yml.j2"
    install = "{{ skypilot_wheel_installation_commands }}"
    mapped = "{{ skypilot_wheel_installation_commands | replace('[rig,', '[slurm,') }}"
    text = stock.read_text()
    if install not in text:
        raise RuntimeError(f"{stock} has no {install}: the rig was made for another SkyPilot.")
    TEMPLATE.write_text(text.replace(install, mapped))
    return provision.TemplateSpec(str(TEMPLATE))


def install() -> None:
    """Register the cloud with SkyPilot in this process. A repetition does nothing."""
    if NAME in dependencies.extras_require:
        return
    dependencies.extras_require[NAME] = dependencies.extras_require["slurm"]
    prices = types.ModuleType(f"sky.catalog.{NAME}_catalog")
    vars(prices).update({k: v for k, v in vars(slurm_catalog).items() if not k.startswith("__")})
    sys.modules[prices.__name__] = prices
    sky.catalog.rig_catalog = prices
    registry.CLOUD_REGISTRY.register(Rig)
    ours = {**vars(slurm_provisioner), "run_instances": run_instances_with_key}
    provision.register_provisioner("slurm", types.SimpleNamespace(run_instances=run_instances))
    provision.register_provisioner(
        NAME, types.SimpleNamespace(**ours), template_override=template_of
    )


install()
