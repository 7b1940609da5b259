#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chromium in front of an isobar: the tests of tests/net/test_browser.py, which start one themselves.
#   browser.sh ISOBAR
. "$(dirname "$0")/lib.sh"
isobar=$(realpath "${1:?isobar}")
command -v chromium-browser >/dev/null 2>&1 || need chromium chromium
log=$(mktemp); trap 'rm -f "$log"' EXIT
ISOBAR=$isobar PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q --tb=short -p no:cacheprovider \
  "$KIT/../net/test_browser.py" >"$log" 2>&1
sed 's/^\(FAILED\|ERROR\) /FAIL /' "$log"
count() { sed -n "s/.*\b\([0-9][0-9]*\) $1.*/\1/p" "$log" | tail -n 1; }
passed=$(count passed) failed=$(count failed) errors=$(count error)
[ -n "$passed$failed$errors" ] || failed=1
total $((passed)) $((failed + errors))
