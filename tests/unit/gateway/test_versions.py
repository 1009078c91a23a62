"""Versions are compared before anything of Monarch's is sent."""

from __future__ import annotations

import sys

import pytest

from monarch_client.gateway import versions
from monarch_client.gateway.errors import VersionMismatchError

HERE = "{}.{}".format(*sys.version_info[:2])


def test_another_patch_release_of_python_is_accepted() -> None:
    mesh = {"python": f"{HERE}.99", "torchmonarch": versions.installed_version()}
    versions.refuse_others(mesh)
    versions.refuse_others({})


def test_a_mismatch_names_both_versions_and_what_to_do() -> None:
    with pytest.raises(VersionMismatchError, match=rf"Python {HERE}, .* Python 3.1\. Run it with"):
        versions.refuse_others({"python": "3.1.4"})
    with pytest.raises(VersionMismatchError, match=r"pip install torchmonarch==0.1.0"):
        versions.refuse_others({"python": f"{HERE}.0", "torchmonarch": "0.1.0"})
