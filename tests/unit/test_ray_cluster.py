"""The division of a cluster among workers, and what the names and options of workers mean, without a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.models.opener import open_judge
from distract.models.options import Options
from distract.models.ray.backend import RayWorkers
from distract.models.ray.cluster import Node, Share, _print_logs, describe_nodes, divide, list_nodes

CPU, BIG, GPU = Node(2, 0), Node(16, 0), Node(32, 8)


@each(
    "nodes, workers, gpus, tensor_parallel, expected",
    ([CPU], 2, None, None, "2 × 1 CPU"),
    ([CPU], 1, None, None, "1 × 2 CPUs"),
    ([BIG], 3, None, None, "3 × 5 CPUs"),
    ([BIG, CPU], 2, None, None, "2 × 8 CPUs"),  # both fit on the large one
    ([BIG, Node(0, 0)], None, None, None, "1 × 16 CPUs"),
    ([BIG, BIG], None, None, None, "2 × 16 CPUs"),
    ([GPU], None, None, None, "8 × 1 GPU"),
    ([GPU, GPU], None, None, 2, "8 × 2 GPUs"),
    ([GPU], 3, 2, None, "3 × 2 GPUs"),
    ([GPU], 16, 0.5, None, "16 × 0.5 GPU"),
    ([GPU], 4, 0, None, "4 × 8 CPUs"),
)
def test_workers_get_a_share(
    nodes: list[Node], workers: int | None, gpus: float | None, tensor_parallel: int | None, expected: str
) -> None:
    number, share = divide(nodes, None, workers, gpus, tensor_parallel)
    assert f"{number} × {share}" == expected


@each(
    "nodes, workers, gpus, others, message",
    ([CPU], 3, None, [], "3 workers × 1 CPU do not fit: a local Ray cluster has 2 CPUs on 1 machine; lower --workers"),
    ([GPU, GPU], 3, 8, [], "3 workers × 8 GPUs do not fit: a local Ray cluster has 16 GPUs on 2 machines; lower"),
    # One worker cannot use cards of two machines.
    ([Node(8, 4), Node(8, 4)], 1, 8, [], "1 worker × 8 GPUs do not fit: "),
    ([CPU], 1, 1, [], "1 worker × 1 GPU do not fit: a local Ray cluster has 0 GPUs on 1 machine; lower"),
    ([CPU], 1, None, [(2, Share(0, 1))], "on 1 machine, and another model has 2 workers; lower --workers"),
    ([GPU], 2, 4, [(1, Share(4, 1))], "8 GPUs on 1 machine, and another model has 1 worker; lower --workers or"),
)
def test_workers_that_do_not_fit_are_refused(
    nodes: list[Node], workers: int, gpus: float | None, others: list[tuple[int, Share]], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        divide(nodes, None, workers, gpus, None, others)
    assert message in str(error.value)


@given(st.lists(st.builds(Node, st.integers(0, 64), st.integers(0, 8)), min_size=1, max_size=6), st.integers(1, 64))
def test_threads_never_exceed_the_processors(nodes: list[Node], workers: int) -> None:
    try:
        number, share = divide(nodes, None, workers, 0, None)
    except UsageError:
        assert sum(int(node.cpus) for node in nodes) < workers
        return
    assert number == workers
    assert sum(int(node.cpus // share.threads) for node in nodes) >= workers
    assert sum(int(node.cpus // (share.threads + 1)) for node in nodes) < workers


def test_an_address_where_nothing_listens_is_refused_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(UsageError, match=r"^no Ray cluster at 127.0.0.1:1: .*refused; start one with "):
        list_nodes("127.0.0.1:1")


def test_a_cluster_is_described() -> None:
    assert describe_nodes([CPU], None) == "a local Ray cluster, which has 2 CPUs"
    assert describe_nodes([GPU, BIG], "10.0.0.1:6379\x1b[2J") == (
        "the Ray cluster at 10.0.0.1:6379\\x1b[2J, which has 8 GPUs and 48 CPUs on 2 machines"
    )


def test_replies_are_stored_under_the_engine_of_the_workers() -> None:
    pytest.importorskip("ray")
    plain = open_judge("smollm2-135m")
    workers = open_judge("smollm2-135m", Options(engine="ray", workers=1))
    assert isinstance(workers, RayWorkers)
    assert (workers.identity, workers.alive) == (plain.identity, 0)


@each(
    "options, message",
    ({"max_length": 2000}, "--model-option max-length is not for workers on transformers"),
    ({"worker_engine": "sglang"}, "--model-option worker-engine=sglang: expected transformers or vllm"),
)
def test_settings_of_another_engine_are_refused(options: dict[str, object], message: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UsageError) as error:
        open_judge("smollm2-135m", Options(engine="ray", workers=1, settings=options))
    assert message in str(error.value)


def test_logs_of_workers_are_safe_notes_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    here = {"ip": "10.0.0.1", "localhost": "10.0.0.1"}
    _print_logs({**here, "pid": 1, "actor_name": "worker 1", "lines": ["\x1b[2Jhello", "x" * 1000], "is_err": False})
    _print_logs({"ip": "10.0.0.2", "localhost": "10.0.0.1", "pid": 2, "actor_name": "worker 2", "lines": ["there"]})
    _print_logs({**here, "pid": "raylet", "lines": ["The disk is full.", "A worker died or was killed."]})
    _print_logs({**here, "pid": "autoscaler", "lines": ["state"]})
    out, err = capsys.readouterr()
    assert out == ""
    first, long, second, ray = err.splitlines()
    assert first == "distract: worker 1: \\x1b[2Jhello"
    assert 300 < len(long) < 350
    assert (second, ray) == ("distract: worker 2 on 10.0.0.2: there", "distract: Ray: The disk is full.")
