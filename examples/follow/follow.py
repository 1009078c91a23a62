from pathlib import Path

from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Follower, NewLines

with PortalClient.from_environment() as portal:  # MPORTAL_URL and MPORTAL_TOKEN
    job = portal.submit("default", Path("job.yaml").read_text())
    for event in Follower(portal, "default", job.id).events():
        if isinstance(event, NewLines):
            for line in event.lines:
                print(line.rank, line.text)
    print(portal.job("default", job.id).status)
