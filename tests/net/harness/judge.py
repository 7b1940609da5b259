# SPDX-License-Identifier: Apache-2.0
"""Judgements that several tests share."""
import re

from .wire import Response, WireError


def first_response(data):
    """The head of the first response in what came back; None when nothing came."""
    return Response(data[:data.index(b"\r\n\r\n") + 4]) if b"\r\n\r\n" in data else None


def n_responses(data):
    """How many responses begin in what came back."""
    return len(re.findall(rb"HTTP/1\.1 [1-5][0-9][0-9] ", data))


def why_not_refused(stand, backend, data, statuses=(400,)):
    """Sends hostile bytes on a new connection. None when they were answered with one of the statuses, the connection ended,
    and the backend got nothing; otherwise what happened instead."""
    before = len(backend.raw)
    try:
        answer = stand.exchange(data, timeout_s=8)
        response = first_response(answer)
    except (TimeoutError, OSError, WireError) as error:
        return f"{data[:120]!r}: {error!r}"
    if response is None or response.status not in statuses:
        return f"{data[:120]!r}: {response and response.start}"
    if n_responses(answer) != 1:
        return f"{data[:120]!r}: more than one answer: {answer!r}"
    if len(backend.raw) != before:
        return f"{data[:120]!r}: the backend got {backend.raw[before:][:200]!r}"
    return None


def all_refused(stand, backend, requests, statuses=(400,)):
    """Asserts that every request is refused; a failure lists all that were not."""
    wrong = [why for why in (why_not_refused(stand, backend, data, statuses) for data in requests) if why]
    assert not wrong, "\n".join(wrong)
