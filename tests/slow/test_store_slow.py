"""Test two processes that write to one reply store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from test_store import WHO

from distract.core.store import Store


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import sys; from pathlib import Path\n"
        "from distract.core.store import Store; from distract.core.records import *\n"
        "with Store(Path(sys.argv[1]), {'model': 'm', 'engine': 'scripted'}) as store:\n"
        "    for i in range(200):\n"
        "        r = Request((Message('user', sys.argv[2] + str(i % 100)),))\n"
        "        store.put([(store.key(r), Reply('x'))])\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    with Store(path, WHO) as store:
        assert len(store) == 200
