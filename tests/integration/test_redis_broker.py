"""Celery's transport: a client lasts as long as its connections; what is taken is kept nowhere."""

from __future__ import annotations

import pytest
from django.conf import settings
from kombu import Connection

from monarch_portal import redis_broker
from monarch_portal.celery_settings import broker_url

pytestmark = pytest.mark.usefixtures("redis_client")


@pytest.fixture
def link(redis_url):
    """A connection as the portal's processes have it."""
    redis_broker.register()
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    with Connection(broker_url(redis_url), transport_options=options) as link:
        yield link


def test_a_channel_keeps_its_client_until_its_connections_go(link):
    channel = link.channel()
    first = channel._create_client()
    assert channel._create_client() is first
    channel._disconnect_pools()
    assert channel._create_client() is not first


def test_redis_keeps_nothing_of_a_hint_that_a_worker_has_taken(link, redis_client):
    queue = link.SimpleQueue("taken")
    queue.put({"a": 1})
    assert redis_client.llen("taken") == 1
    message = queue.get(timeout=5)
    assert not redis_client.exists("taken", "unacked", "unacked_index")
    message.ack()
    queue.close()


def test_what_a_worker_has_not_done_when_it_ends_goes_back(link, redis_client):
    queue = link.SimpleQueue("not-done")
    queue.put({"a": 1})
    queue.get(timeout=5)
    queue.close()
    link.default_channel.close()
    assert redis_client.llen("not-done") == 1
