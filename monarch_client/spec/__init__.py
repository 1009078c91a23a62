"""The job specification: parsed, checked and described here, for portal and client alike."""

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.findings import SpecCode
from monarch_client.spec.job_spec import JobSpec
from monarch_client.spec.portal_block import LogPolicy, PortalBlock, Retry
from monarch_client.spec.schema import json_schema

__all__ = [
    "InvalidSpecErrors",
    "JobSpec",
    "LogPolicy",
    "PortalBlock",
    "Retry",
    "SpecCode",
    "SpecError",
    "json_schema",
]
