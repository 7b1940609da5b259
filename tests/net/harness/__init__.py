# SPDX-License-Identifier: Apache-2.0
"""What the tests on real processes are built from: `ports` (free ones), `wire` (HTTP/1 bytes on a socket, read strictly),
`backend` (scripted origins), `process` (isobar itself) and `stand` (all of them together, checked at the end)."""
