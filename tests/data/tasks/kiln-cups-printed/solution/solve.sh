#!/bin/bash
set -euo pipefail
cat > /srv/work/cups.csv <<'EOF'
kiln,glaze,cups
north,celadon,20
north,tenmoku,21
south,celadon,30
south,tenmoku,9
EOF
