"""Jobs: their threads, their cancellation, and what they send to slow clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from serving import until as wait_for
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from heed.documents.file_format import FileContext
from heed.documents.formats import translate_file
from heed.documents.text_translator import TextTranslator
from heed.documents.translation import TranslateOptions
from heed.serve.engine.admission import ADMISSION, Admission, Admissions, Jobs
from heed.serve.engine.job import MAX_BEHIND, ClientLeftError, Job
from heed.serve.engine.outlet import CAPACITY
from heed.serve.engine.pace import SHARE, SLICE, STRETCH, Pace, Slices
from heed.serve.engine.threads import MOST_IDLE, JobThreads
from heed.serve.errors import ApiError
from heed.serve.limits import Limits
from heed.serve.telemetry import Metrics
from heed.text.readers.columns import Sides

Result = TypeVar("Result")


def run_in_a_thread(work: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, which the loop of a browser in this thread would not allow."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def make_jobs(limits: Limits | None = None) -> Jobs:
    """Jobs of a worker that does nothing."""
    worker: Any = SimpleNamespace(is_warm=True, num_waiting=0)
    return Jobs(worker, limits or Limits(), Metrics())


def make_job(limits: Limits | None = None) -> Job:
    """A job of its own."""
    worker: Any = SimpleNamespace(is_warm=True, num_waiting=0)
    return Job(worker, limits or Limits(), Metrics(), 60.0, Pace())


async def waiting() -> dict[str, Any]:
    """What a client sends that waits for its answer."""
    await asyncio.Event().wait()
    return {}


HTTP = Request({"type": "http"}, waiting)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def test_the_end_of_the_process_waits_for_no_job() -> None:
    assert run_in_a_thread(make_jobs().run(HTTP, lambda job: threading.current_thread().daemon))


def test_a_stream_that_nobody_begins_to_read_is_cancelled() -> None:
    """As when its client has left before the answer begins."""

    def work(job: Job, send: Callable[[int], None]) -> None:
        while True:
            job.check()

    async def left() -> int:
        jobs = make_jobs()
        items = await jobs.stream(HTTP, work)
        del items
        await until(lambda: jobs.num_admitted == 0)
        return jobs.num_admitted

    assert run_in_a_thread(left()) == 0


class Late(Future[str]):
    """Ends between the time-out of those who wait for it and their next look."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def result(self, timeout: float | None = None) -> str:
        """As a future."""
        if timeout is None:
            return super().result()
        if self.error is None:
            self.set_result("done")
        else:
            self.set_exception(self.error)
        raise TimeoutError


def test_work_that_ends_when_a_job_stops_waiting_for_it_has_its_own_result() -> None:
    futures = [Late(None), Late(TimeoutError("of the work"))]
    worker: Any = SimpleNamespace(num_waiting=0, call=lambda work: futures.pop(0))
    job = Job(worker, Limits(), Metrics(), 60.0, Pace())
    assert job.call(lambda: "done") == "done"
    with pytest.raises(TimeoutError, match="of the work"):
        job.call(lambda: "done")


def test_only_time_in_which_a_job_needs_the_worker_is_time_in_the_queue() -> None:
    """A file may take long to read, and the first search that it then submits has not waited."""
    worker: Any = SimpleNamespace(num_waiting=1, call=lambda work: Future())
    job = Job(worker, Limits(queue_seconds=0.1), Metrics(), 60.0, Pace())
    time.sleep(0.15)
    job.check()
    begin = time.monotonic()
    with pytest.raises(ApiError, match="waited too long in the queue"):
        job.call(lambda: None)
    assert time.monotonic() - begin >= 0.1


def test_jobs_are_cancelled_when_the_server_ends() -> None:
    def work(job: Job) -> None:
        while True:
            job.check()

    async def closed() -> ApiError:
        jobs = make_jobs()
        running = asyncio.create_task(jobs.run(HTTP, work))
        await until(lambda: jobs.num_admitted == 1)
        jobs.close()
        with pytest.raises(ApiError) as error:
            await running
        await until(lambda: jobs.num_admitted == 0)
        return error.value

    assert run_in_a_thread(closed()).status == 503


def test_all_jobs_of_an_admitted_request_run_also_when_the_server_shuts_down() -> None:
    """The body of a form is read by a job, and what it asks for is done by another one."""

    async def served() -> tuple[list[str], list[int]]:
        jobs = make_jobs(Limits(queue=1))
        counts: list[int] = []

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            first = await jobs.run(request, lambda job: "read")
            jobs.is_draining = True
            counts.append(jobs.num_admitted)
            second = await jobs.run(request, lambda job: "done")
            await send({"type": first, "status": second})
            counts.append(jobs.num_admitted)
            with pytest.raises(ApiError, match="shutting down"):
                await jobs.run(Request({**scope, ADMISSION: Admission()}, receive), lambda job: None)

        sent: list[str] = []

        async def send(message: Message) -> None:
            sent.extend(message.values())

        await Admissions(application, jobs)({"type": "http"}, waiting, send)
        return sent, counts

    assert run_in_a_thread(served()) == (["read", "done"], [1, 0])


TMX = '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></body></tmx>'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<p>a</p>"),
        ("a.txt", "a"),
        ("a.csv", "en,de\na,\n"),
        ("a.tsv", "en\tde\na\t\n"),
        ("a.tmx", TMX),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\na\n"),
    ],
)
def test_reading_a_document_stops_when_its_job_is_cancelled(name: str, text: str) -> None:
    job, step = make_job(), SimpleNamespace(translator=None)
    job.cancel()
    translator = TextTranslator(job, [step], TranslateOptions())  # type: ignore[list-item]
    with pytest.raises(ClientLeftError):
        translate_file(text.encode(), translator, FileContext(name, Sides("en", "de")))


def test_reading_a_document_stops_when_its_time_is_over() -> None:
    worker: Any = SimpleNamespace(is_warm=True, num_waiting=0)
    job = Job(worker, Limits(), Metrics(), -1.0, Pace())
    with pytest.raises(ApiError) as error:
        TextTranslator(job, [], TranslateOptions()).html("<p>a</p>")
    assert error.value.status == 504


def test_a_job_waits_for_a_client_that_does_not_read_and_counts_until_it_has_read_all() -> None:
    sent: list[int] = []

    def work(job: Job, send: Callable[[int], None]) -> None:
        for number in range(CAPACITY + 3):
            send(number)
            sent.append(number)

    async def read() -> list[int]:
        jobs = make_jobs()
        items = await jobs.stream(HTTP, work)
        await until(lambda: len(sent) == CAPACITY)
        assert jobs.num_admitted == 1
        received = [await anext(items) for _ in range(4)]  # the fourth leaves the places of three to others
        await until(lambda: len(sent) == CAPACITY + 3)
        assert jobs.num_admitted == 1, "its client has not read everything"
        received += [item async for item in items]
        await until(lambda: jobs.num_admitted == 0)
        return received

    assert run_in_a_thread(read()) == list(range(CAPACITY + 3))


def test_a_stream_that_nobody_reads_any_more_ends_its_job() -> None:
    ends: list[Exception] = []

    def work(job: Job, send: Callable[[int], None]) -> None:
        try:
            while True:
                send(0)
        except Exception as error:
            ends.append(error)
            raise

    async def leave() -> None:
        jobs = make_jobs()
        items: Any = await jobs.stream(HTTP, work)
        await anext(items)
        await items.aclose()
        await until(lambda: jobs.num_admitted == 0)

    run_in_a_thread(leave())
    assert [type(error) for error in ends] == [ClientLeftError]


def test_a_job_that_is_behind_gets_no_more_partial_outputs() -> None:
    job, ticket = make_job(), SimpleNamespace()
    for number in range(1000):
        job._grown(ticket, [number])  # type: ignore[arg-type]
    assert job._inbox.qsize() == MAX_BEHIND


def test_jobs_with_more_to_do_share_a_part_of_the_time() -> None:
    now, rests = [10.0], list[float]()
    pace = Pace(lambda: now[0], rests.append)
    for _ in range(4):  # four jobs at once
        pace.rest()
    assert rests == pytest.approx([number * SLICE / SHARE for number in range(4)])
    now[0] += 100
    pace.rest()
    assert rests[-1] == 0


def test_on_a_busy_machine_jobs_rest_longer() -> None:
    rests = list[float]()
    pace = Pace(lambda: 10.0, rests.append)
    for taken in (0.5 * SLICE, 2 * SLICE, 100 * SLICE, SLICE):
        pace.rest(taken)
    assert rests == pytest.approx([0, SLICE / SHARE, 3 * SLICE / SHARE, (3 + STRETCH) * SLICE / SHARE])


@pytest.mark.parametrize("before", [0.0, 1000.0])
@pytest.mark.parametrize("busy", [1, 3])
def test_a_job_rests_when_it_has_computed_for_a_slice_and_seldom_asks(busy: int, before: float) -> None:
    """`busy`: how much longer than its computing time the thread takes. `before`: what it has computed for others."""
    now, asked, taken = [0.0], [0], list[float]()

    def computed() -> float:
        asked[0] += 1
        return before + now[0] / busy

    pace: Any = SimpleNamespace(rest=taken.append)
    slices = Slices(pace, lambda: now[0], computed)
    for _ in range(1000 * busy):
        now[0] += 0.03 * SLICE
        slices.rest_if_due()
    assert 22 <= len(taken) <= 27, "30 slices but for those that are free"
    assert taken == pytest.approx([busy * SLICE] * len(taken), rel=0.2)
    assert asked[0] <= 10 * 30


def test_a_job_that_checks_its_time_rests() -> None:
    job, rests = make_job(), list[bool]()
    job._slices.rest_if_due = lambda: rests.append(True)  # type: ignore[method-assign]
    job.check()
    assert rests


def test_each_job_has_a_thread_and_the_next_one_is_ready() -> None:
    threads, inside, go = JobThreads(), threading.Semaphore(0), threading.Event()

    def work() -> None:
        inside.release()
        go.wait(60)

    for _ in range(MOST_IDLE + 4):
        threads.run(work)
    for _ in range(MOST_IDLE + 4):
        assert inside.acquire(timeout=60), "a job waits for the end of another"
    wait_for(lambda: threads._num_idle == 1)
    go.set()
    wait_for(lambda: threads._num_idle == MOST_IDLE)
    threads.close()
    wait_for(lambda: not [each for each in threading.enumerate() if getattr(each, "_target", None) == threads._main])


def test_no_job_is_lost_where_the_system_allows_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, done, most = JobThreads(), threading.Semaphore(0), 1
    start, started = threading.Thread.start, list[threading.Thread]()

    def limited_start(thread: threading.Thread) -> None:
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited_start)
    for _ in range(5):
        threads.run(done.release)
    for _ in range(5):
        assert done.acquire(timeout=60), "a job was lost"
    wait_for(lambda: threads._num_idle == 1)
    threads.close()
    wait_for(lambda: not started[0].is_alive())


def test_a_first_thread_that_cannot_start_is_started_for_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, done = JobThreads(), threading.Semaphore(0)

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refused)
        threads.run(done.release)
    threads.run(done.release)
    assert all(done.acquire(timeout=60) for _ in range(2))
    threads.close()
