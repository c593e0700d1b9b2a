"""vLLM's own API server with the embedded judge behind it, on loopback, for tests and benchmarks."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "smollm2"
PATIENCE = 300.0
"""Seconds until the server must be up; it takes about one minute on two idle cores."""


@contextmanager
def vllm_server(model: Path, log: Path) -> Iterator[str]:
    """Start the server, wait until it is up, yield its base URL, and stop it at the end.

    Raises:
        RuntimeError: if it ends or does not start; the message contains the end of its log.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The command line of the CPU build fails, because it looks for a package with another name.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--served-model-name", NAME, "--dtype", "float32", "--enforce-eager", "--max-logprobs", "64"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | settings, start_new_session=True
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(health: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise RuntimeError(f"the server did not come up: {log.read_text(errors='replace')[-2000:]}")
