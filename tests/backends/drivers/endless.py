"""Proper, but it never runs out of observations about ``free``."""

from speaking import encode, proper_reply, serve

SEEN = {"observations": [{"seen": "backing-refused", "size": 1}] * 10, "more": True}

serve(
    lambda request: encode(
        {**({} if request == "more" else proper_reply(request)), **(SEEN if request in ("more", "free a") else {})}
    )
)
