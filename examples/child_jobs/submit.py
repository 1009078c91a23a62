import os
from pathlib import Path

from monarch_client.rest.client import PortalClient

project = os.environ["MPORTAL_PROJECT"]
with PortalClient.from_environment() as portal:
    job = portal.submit(project, Path("eval.yaml").read_text(), idempotency_key="eval-1000")
    mine = portal.jobs(project, status=["RUNNING", "QUEUED"])  # its own children, and no other job
