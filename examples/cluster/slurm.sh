#!/usr/bin/env bash
# One shard for each task of a SLURM array, then the merge, if all tasks have succeeded:
#   id=$(sbatch --parsable slurm.sh)
#   sbatch --dependency="afterok:$id" --wrap "distract merge run.*-of-8 --out run"
# After a time limit, submit it again: finished shards end at once, the others go on.
#
#SBATCH --job-name=distract
#SBATCH --array=1-8
#SBATCH --gres=gpu:1
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Send SIGTERM three minutes before the time is up, so that the store can be copied.
#SBATCH --signal=B:TERM@180
set -euo pipefail
export SHARED=${SHARED:-$SLURM_SUBMIT_DIR}
# The size of the whole array: SLURM counts only the tasks of one submission.
shards=8
exec bash "$SHARED/shard.sh" "$SLURM_ARRAY_TASK_ID" "$shards" \
  attack --judge qwen3-8b --data "$SHARED/cases.jsonl" --limit all --control
