import asyncio
import threading
import time

from prometheus_client.parser import text_string_to_metric_families

from tests.world import World
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import ToolCall
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import Failure
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.bus import Bus
from toolreeve.record.events import EventPublisher
from toolreeve.record.metrics import OTHER, UNKNOWN, Metrics


def samples_of(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample as (name, label values...) → value, read back by Prometheus' own parser."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render())
        for sample in family.samples
    }


def test_calls_are_counted_by_tool_and_outcome() -> None:
    metrics = Metrics()
    metrics.executed("read_file", "", 0.002)
    metrics.executed("read_file", "", 0.002)
    metrics.executed("read_file", "E_FILE_NOT_FOUND", 0.001)

    text = metrics.render()

    line = 'toolreeve_tool_execution_total{error_code="",success="true",tool_name="read_file"} 2.0'
    assert line in text.splitlines()
    assert samples_of(metrics)["toolreeve_tool_execution_total", "E_FILE_NOT_FOUND", "false", "read_file"] == 1


def test_durations_fall_into_cumulative_buckets() -> None:
    metrics = Metrics()
    for seconds in (0.00005, 0.0001, 0.002, 1_000.0):
        metrics.executed("t", "", seconds)

    samples = samples_of(metrics)

    name = "toolreeve_tool_execution_duration_seconds"
    assert samples[f"{name}_bucket", "0.0001", "t"] == 2
    assert samples[f"{name}_bucket", "0.005", "t"] == 3
    assert samples[f"{name}_bucket", "300.0", "t"] == 3
    assert samples[f"{name}_bucket", "+Inf", "t"] == 4
    assert samples[f"{name}_count", "t"] == 4
    assert samples[f"{name}_sum", "t"] == 1_000.00215


def test_unknown_names_share_a_label() -> None:
    metrics = Metrics()
    for _ in range(5):
        metrics.executed("", "E_TOOL_NOT_FOUND", 0.001)

    assert samples_of(metrics)["toolreeve_tool_execution_total", "E_TOOL_NOT_FOUND", "false", UNKNOWN] == 5


def test_the_number_of_names_is_bounded() -> None:
    metrics = Metrics(names=10)
    for number in range(60):
        metrics.executed(f"tool{number}", "", 0.001)
        metrics.cached(f"tool{number}", "miss")

    samples = samples_of(metrics)

    assert samples["toolreeve_tool_execution_total", "", "true", OTHER] == 50
    assert samples["toolreeve_cache_total", "miss", OTHER] == 50


def test_approvals_cache_breakers_and_calls_in_flight_are_exported() -> None:
    metrics = Metrics(lambda: {"fetch": "open", "read": "closed"})
    metrics.approved("granted", 2.0)
    metrics.cached("read", "hit")
    metrics.started()
    metrics.started()
    metrics.executed("t", "", 0.001)

    samples = samples_of(metrics)

    assert samples["toolreeve_approvals_total", "granted"] == 1
    assert samples["toolreeve_approval_wait_seconds_bucket", "5.0"] == 1
    assert samples["toolreeve_cache_total", "hit", "read"] == 1
    assert samples["toolreeve_calls_in_flight",] == 1
    assert (samples["toolreeve_breaker_state", "fetch"], samples["toolreeve_breaker_state", "read"]) == (2, 0)


def test_values_kept_elsewhere_are_read_on_collection() -> None:
    metrics = Metrics()
    backlog = [3.0]
    metrics.watch("toolreeve_audit_backlog", "Records that wait.", lambda: backlog[0])
    metrics.watch("toolreeve_audit_failures_total", "Writes that failed.", lambda: 2)
    backlog[0] = 5.0

    samples = samples_of(metrics)

    assert (samples["toolreeve_audit_backlog",], samples["toolreeve_audit_failures_total",]) == (5, 2)


def test_a_tool_name_cannot_break_the_text() -> None:
    metrics = Metrics()
    metrics.executed('evil"} 1\nfake_metric 9', "", 0.001)

    assert ("fake_metric",) not in samples_of(metrics)


def test_counts_from_several_threads_add_up() -> None:
    metrics = Metrics()

    def count() -> None:
        for _ in range(2_000):
            metrics.executed("t", "", 0.001)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert samples_of(metrics)["toolreeve_tool_execution_total", "", "true", "t"] == 8_000


async def test_programs_are_counted_by_what_they_could_change(world: World) -> None:
    async with world.reeve() as reeve:
        await reeve.call("bash", command="cat /dev/null")
        await reeve.call("calculate", expression="1")

        found = samples_of(reeve.metrics)

    assert found["toolreeve_sandbox_runs_total", "look"] == 1.0
    assert found["toolreeve_sandbox_seconds_total", "look"] > 0
    assert found["toolreeve_sandbox_running",] == found["toolreeve_sandbox_limited_total",] == 0.0


async def test_programs_are_counted_while_they_run(world: World) -> None:
    async with world.reeve(settings=world.settings(policy=Policy(mode="bypass"))) as reeve:
        call = asyncio.create_task(reeve.call("bash", command="sleep 0.2"))
        while not samples_of(reeve.metrics)["toolreeve_sandbox_running",]:  # noqa: ASYNC110 - a program starts
            await asyncio.sleep(0.01)
        await call

        assert samples_of(reeve.metrics)["toolreeve_sandbox_running",] == 0.0


def test_programs_that_a_limit_stopped_and_files_put_aside_are_counted() -> None:
    metrics = Metrics()
    publisher = EventPublisher(Bus(), metrics, Redactor(()), time.time)
    entry = Entry(ToolCall(tool="bash", args={}), at=0.0, started=0.0)
    entry.meta.command = "head -c 2G /dev/zero > big"
    entry.meta.quarantined = ["moved .envrc"]
    entry.outcome = Failure(ErrorCode.LIMIT, "stopped")
    publisher.ended(entry)

    found = samples_of(metrics)
    assert (found["toolreeve_sandbox_limited_total",], found["toolreeve_sandbox_quarantined_total",]) == (1.0, 1.0)
