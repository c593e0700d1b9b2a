#!/usr/bin/env bash
# One shard for each host, then the merge: SHARED=FOLDER bash ssh.sh "HOST HOST …" attack --judge …
#
# Each host has distract, and sees the folder SHARED, with this script's neighbour shard.sh in it.
set -euo pipefail
read -rd '' -a hosts <<<"$1" || :
shift
((${#hosts[@]})) || { echo "name the hosts first: bash ssh.sh \"HOST HOST …\" attack …" >&2; exit 2; }
: "${SHARED:?name a folder that all hosts share}"
shards=${#hosts[@]}

tasks=()
# Ended connections end the tasks.
trap 'kill "${tasks[@]}" 2>/dev/null || :; wait; exit 130' INT TERM HUP
for at in "${!hosts[@]}"; do
  shard=$((at + 1))
  task=$(printf '%q ' env "SHARED=$SHARED" bash "$SHARED/shard.sh" "$shard" "$shards" "$@")
  # With a terminal, the task ends when the connection does.
  ssh -tt "${hosts[at]}" "$task" >"$SHARED/log.$shard-of-$shards" 2>&1 </dev/null &
  tasks+=($!)
done
failed=()
for at in "${!tasks[@]}"; do
  wait "${tasks[at]}" || failed+=("${hosts[at]}")
done
if ((${#failed[@]})); then
  echo "failed on ${failed[*]} (see the logs in $SHARED); the same command resumes" >&2
  exit 1
fi
distract merge "$SHARED"/run.*-of-"$shards" --out "$SHARED/run"
