"""The refusal to start on a port that another process has."""

from __future__ import annotations

import pytest

from monarch_portal.embedded import listener
from monarch_portal.embedded.errors import EmbeddedError

PORTAL = "process 7 of user ada (1000): python -m monarch_portal.embedded run"
OTHER = "process 7 of user ada (1000): python -m http.server 8100"


@pytest.mark.parametrize(("holder", "is_to_be_ended"), [(PORTAL, False), (OTHER, True)])
def test_the_advice_is_never_to_end_another_portal(
    holder: str, is_to_be_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPORTAL_PORT", "8100")
    monkeypatch.setattr(listener, "_bound", lambda _port: None)
    monkeypatch.setattr(listener, "describe_holder", lambda _address, _port: holder)
    with pytest.raises(EmbeddedError, match="MPORTAL_PORT=N make run") as caught:
        listener.listen(None)
    assert holder in str(caught.value)
    assert ("End that process" in str(caught.value)) is is_to_be_ended
    assert ("do not end it" in str(caught.value)) is not is_to_be_ended
