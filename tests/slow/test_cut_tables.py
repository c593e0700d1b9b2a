"""Test files of columns that were cut: whatever the length, one line and exit code 2, also as the process ends."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

FRAME = pd.DataFrame(
    {
        "prompt": [f"Name a sea ({number})." for number in range(300)],
        "response_a": pd.Categorical(["The Baltic.", "None."] * 150),
        "response_b": [f"Number {number}" * 9 for number in range(300)],
    }
)

# Each length is read in a process of its own, which ends as any other does: a thread of pyarrow may end after it.
SCRIPT = """
import os, sys
from pathlib import Path
import distract.studies.attack.session, pyarrow.parquet  # once
from distract.cli.main import main

raw, path = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
codes = {}
for length in sorted({*range(0, len(raw), len(raw) // 25), *range(1, 12), *range(len(raw) - 12, len(raw))}):
    path.write_bytes(raw[:length])
    child = os.fork()
    if not child:
        os.dup2(os.open(f"{path}.{length}", os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = ["distract", "attack", "--judge", "planted:fair", "--data", str(path), "--dry-run"]
        main()
    status = os.waitpid(child, 0)[1]
    lines = Path(f"{path}.{length}").read_text().splitlines()
    if os.waitstatus_to_exitcode(status) != 2 or len(lines) != 1 or not lines[0].startswith(f"distract: {path}: "):
        codes[length] = (status, lines[-3:])
print(codes)
"""

FORMS: dict[str, Callable[[str], None]] = {
    "plain.feather": lambda path: FRAME.to_feather(path, compression="uncompressed", chunksize=100),
    "lz4.feather": lambda path: FRAME.to_feather(path, compression="lz4"),
    "zstd.feather": lambda path: FRAME.to_feather(path, compression="zstd"),
    "table.parquet": lambda path: FRAME.to_parquet(path),
}


@pytest.mark.parametrize("form", FORMS)
def test_cut_file_is_one_line_at_any_length(form: str, tmp_path: Path) -> None:
    FORMS[form](str(tmp_path / form))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / form), str(tmp_path / f"cut-{form}")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert result.stdout == "{}\n", result.stderr
