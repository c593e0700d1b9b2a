"""Resolve every extra with the versions of ``constraints.txt``, and install the small ones together.

The tests are skipped if no package index can be reached. vLLM is resolved alone, because it pins a torch of its own.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
SMALL = {
    "openai": "openai",
    "language": "py3langid",
    "parquet": "pyarrow",
    "logs": "zstandard",
    "pandas": "pandas",
    "pytest": "hypothesis",
    "docs": "sphinx",
}
"""Extras of at most a few hundred MB, and a module that each brings."""


def compile_extras(*extras: str, constraints: Path = ROOT / "constraints.txt") -> subprocess.CompletedProcess[str]:
    """Resolve distract with these extras, as ``pip install -c constraints.txt ".[EXTRAS]"`` would."""
    uv = shutil.which("uv", path=Path(sys.executable).parent) or "uv"
    named = [word for extra in extras for word in ("--extra", extra)]
    command = [uv, "pip", "compile", "-q", "--no-header", "-c", str(constraints), *named, str(ROOT / "pyproject.toml")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def need_index() -> None:
    """Skip without a package index."""
    if (result := compile_extras()).returncode:
        pytest.skip(f"distract alone cannot be resolved, so no index can be reached: {result.stderr[-300:]}")


@pytest.mark.parametrize(
    "extras", [*((one,) for one in EXTRAS if one != "vllm"), ("deepeval", "inspect"), ("local", "ray", "test")]
)
def test_extra_is_resolved_with_the_constraints(extras: tuple[str, ...]) -> None:
    result = compile_extras(*extras)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("extras", [("vllm",), ("local", "vllm"), ("ray", "vllm")])
def test_vllm_is_resolved_without_the_constraints(extras: tuple[str, ...], tmp_path: Path) -> None:
    (free := tmp_path / "none.txt").touch()
    result = compile_extras(*extras, constraints=free)
    assert result.returncode == 0, result.stderr
    assert "\nvllm==" in f"\n{result.stdout}"


def test_small_extras_install_and_import(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    # Build in a copy, because the build leaves files beside the source.
    left_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "tests", "benchmarks", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "source", ignore=left_out)
    python = str(tmp_path / "venv" / "bin" / "python")
    package = f"{tmp_path / 'source'}[{','.join(SMALL)}]"
    install = [python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), package]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    script = f"import distract, {', '.join(SMALL.values())}"
    done = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
