from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.live import sse
from monarch_client.rest.server_sent import ServerSentEvent, read_events


def test_an_event_has_name_id_and_data() -> None:
    assert sse.event("line", "[1]", "1:42").raw == b"event: line\nid: 1:42\ndata: [1]\n\n"
    assert sse.event("end", "").raw == b"event: end\ndata: \n\n"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_data_can_end_an_event_or_forge_another(data: str) -> None:
    sent = [sse.OPENING, sse.event("row", data, "1:1"), sse.BEAT, sse.event("end", "")]
    first, beat, last = read_events([each.raw for each in sent])
    normal = data.replace("\r\n", "\n").replace("\r", "\n")
    assert first == ServerSentEvent("row", normal, "1:1")
    assert beat == ServerSentEvent("beat", "", "1:1")
    assert last == ServerSentEvent("end", "", "1:1")
