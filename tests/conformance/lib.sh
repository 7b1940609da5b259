# SPDX-License-Identifier: Apache-2.0
# Shared by the drivers: sourced, never run.
# Every driver ends with the line 'N passed, M failed' (', K skipped' may follow).
set -u
KIT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

need() { # need COMMAND PACKAGE...: stops with a hint when a tool is missing
  command -v "$1" >/dev/null 2>&1 || { echo "missing: $1 (install: ${*:2})" >&2; exit 77; }
}

wait_port() { # wait_port HOST PORT [TENTHS]
  local i n=${3:-80}
  for ((i = 0; i < n; i++)); do
    (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null && return 0
    sleep 0.1
  done
  echo "nothing listens on $1:$2" >&2
  return 1
}

loopback_only() { # these tools must never leave the machine
  case $1 in
    127.*|localhost|::1|'[::1]') ;;
    *) echo "refused: $1 is not a loopback address" >&2; exit 2 ;;
  esac
}

total() { # total PASSED FAILED [SKIPPED]
  if [ "${3:-0}" -gt 0 ]; then echo "$1 passed, $2 failed, $3 skipped"
  else echo "$1 passed, $2 failed"; fi
  [ "$2" -eq 0 ]
}
