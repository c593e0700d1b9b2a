"""The identity of judge functions in processes of their own, and with values of large libraries."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from judge_states import LIBRARIES

SCRIPT = """
import json, sys
from pathlib import Path
from judge_states import IMPORTS, LIBRARIES, STATES, Folders
folders, names = Folders(Path(sys.argv[1])), sys.argv[2:]
libraries = {name: LIBRARIES[name] for name in names}
digests = {name: folders.digest(text, 1) for name, text in {**STATES, **libraries}.items()}
digests |= {name: folders.digest(text, 1, files) for name, (text, files) in IMPORTS.items()}
print(json.dumps([digests, {name: folders.digest(text, 2) for name, text in libraries.items()}]))
"""


def test_judges_are_recognised_in_every_process(tmp_path: Path) -> None:
    packages = {name: text.partition("import ")[2].split()[0] for name, text in LIBRARIES.items()}
    names = [name for name, package in packages.items() if find_spec(package)]
    tests, results = Path(__file__).parents[1], []
    for seed in ("0", "1", "random"):
        (folder := tmp_path / seed).mkdir()
        places = f"{tests.parent}{os.pathsep}{tests}"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": places, "OPENAI_API_KEY": f"sk-{seed}"}
        command = [sys.executable, "-c", SCRIPT, str(folder), *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout))
    (first, changed), *others = results
    assert len(first) >= 12 + len(names)
    assert all(other == [first, changed] for other in others)
    assert not [name for name in names if first[name] == changed[name]]
