#!/usr/bin/env bash
# Judge one shard: SHARED=FOLDER bash shard.sh I N attack --judge …
#
# The store is on a local disk meanwhile, because SQLite needs one. It is copied to the shared folder when the task ends
# or is stopped, and back when the task begins again, so that nothing is asked twice.
set -euo pipefail
shard=$1 shards=$2
shift 2
name=$shard-of-$shards
kept=${SHARED:?name a folder that all machines share}/stores/$name
local=$(mktemp -d "${TMPDIR:-/tmp}/distract.XXXXXX")

# Each step can be cut off: $kept.new is always whole, and newer than $kept.
keep() {
  trap '' TERM HUP INT
  mkdir -p "$SHARED/stores"
  rm -rf "$kept.part"
  cp -R "$local" "$kept.part"
  rm -rf "$kept.new"
  mv "$kept.part" "$kept.new"
  rm -rf "$kept"
  mv "$kept.new" "$kept"
  rm -rf "$local"
}

if [[ -d $kept.new ]]; then
  rm -rf "$kept"
  mv "$kept.new" "$kept"
fi
if [[ -d $kept ]]; then
  cp -R "$kept/." "$local"
fi
trap keep EXIT
distract "$@" --shard "$shard/$shards" --store "$local/replies.sqlite" --out "$SHARED/run.$name" &
child=$!
# The store is whole once distract has ended: pass the signal on, and wait.
trap 'kill -TERM "$child" 2>/dev/null || :' TERM HUP INT
code=0
wait "$child" || code=$?
while kill -0 "$child" 2>/dev/null; do
  code=0
  wait "$child" || code=$?
done
exit "$code"
