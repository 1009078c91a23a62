"""Log lines as JSON."""

from __future__ import annotations

import json

from jobs.api.logs.log_views import line_row
from jobs.live import sse
from jobs.logs.lines import LogLine
from jobs.readers.job_log import line_of_job, row_of_job


def test_a_line_is_the_same_in_a_page_and_in_a_live_stream():
    line = LogLine(7, 3, "stderr", 1_790_000_000_120, 'caf\xe9\u2028\r\n"quoted"', more=True)
    sent = sse.json_event("line", [row_of_job(2, line)], "2:7").raw
    head, end = b"event: line\nid: 2:7\ndata: ", b"\n\n"
    assert sent.startswith(head) and sent.endswith(end)
    data = sent.removeprefix(head).removesuffix(end)
    assert b"\n" not in data and b"\r" not in data
    assert json.loads(data) == [line_row(line_of_job(2, line))]
