#!/bin/bash
set -euo pipefail
cat > /srv/work/memory.sh <<'SH'
#!/bin/bash
awk '$1 == "MemTotal:" { print int($2 / 1024) }' "${1:-/proc/meminfo}"
SH
