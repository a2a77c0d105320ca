"""The cluster executor: a light process on this machine hands pieces to Dask; only it writes the registry.

Any Dask deployment will do, by its address. If a worker dies, the scheduler gives its piece to another one.
Cancelling sets a flag on the workers, because Dask does not stop a running task.
"""

from __future__ import annotations

import ipaddress
import os
import queue
import secrets
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from ... import plugins
from ...errors import Cancelled, RunError, UserError
from ...runs.carrier import Carrier, outcome_of
from ...runs.files import write_json
from ...runs.heartbeat import Heartbeat
from ...runs.process import monotonic, place
from ...runs.record import CLAIM, DONE, FAIL, FINISH, QUEUED, STOP, SWEEP, IllegalTransition, RunRecord, of_sweep
from ...runs.registry import Registry
from . import remote

# -----------------------------------------------------------------------------------------------
# Which cluster a run may be given to. Dask's wire format carries code, so only trusted addresses are taken.
#
# These are ``tls://`` (both ends show certificates), and ``tcp://`` on this machine.


ADDRESS = "HEADVIZ_DASK"
INSECURE = "HEADVIZ_DASK_INSECURE"
CERTIFICATES = {
    "tls_ca_file": "HEADVIZ_DASK_CA",
    "tls_client_cert": "HEADVIZ_DASK_CERT",
    "tls_client_key": "HEADVIZ_DASK_KEY",
}

_FORM = "Write tls://HOST:PORT, or tcp://127.0.0.1:PORT for a scheduler on this machine."


def cluster_address(address: str | None = None) -> str:
    """The scheduler's address, ``$HEADVIZ_DASK`` by default; a ``RunError`` if it is not a trusted one."""
    text = (os.environ.get(ADDRESS, "") if address is None else address).strip()
    if not text:
        raise RunError(f"No cluster is set. Put its scheduler's address into {ADDRESS}. {_FORM}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.path not in ("", "/") or parts.username:
        raise RunError(f"'{text}' is not the address of a Dask scheduler. {_FORM}")
    if parts.scheme == "tls":
        return text.rstrip("/")
    if parts.scheme != "tcp":
        raise RunError(f"'{parts.scheme}://' is not supported. {_FORM}")
    if not is_loopback(host) and os.environ.get(INSECURE) != "1":
        raise RunError(
            f"'{text}' is neither encrypted nor on this machine: anybody who reaches it could run code. {_FORM} "
            f"In a network where you trust everyone, {INSECURE}=1 allows it."
        )
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a name or number means this machine and cannot mean another one."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def security(address: str) -> Any:
    """Certificates for a ``tls://`` address, from ``$HEADVIZ_DASK_CA``, ``_CERT``, ``_KEY`` or Dask's own settings."""
    if not address.startswith("tls://"):
        return None
    from distributed.security import Security

    certificates = {name: os.environ[variable] for name, variable in CERTIFICATES.items() if os.environ.get(variable)}
    security: Any = Security(require_encryption=True, **certificates)
    if not security.tls_ca_file or not security.tls_client_cert:
        raise RunError(
            f"{address} needs certificates: set {', '.join(CERTIFICATES.values())}, or distributed.comm.tls in Dask's "
            "configuration."
        )
    for path in (security.tls_ca_file, security.tls_client_cert, security.tls_client_key):
        if path and "\n" not in path and not os.path.isfile(path):
            raise RunError(f"The certificate file '{path}' does not exist.")
    return security


# -----------------------------------------------------------------------------------------------


CONNECT = 20.0  # seconds
KNOCK = 5.0  # seconds
AHEAD = 2  # pieces per worker thread handed over in advance
GONE = 60.0  # seconds without any worker after which a run gives up
FAULTS = (UserError, MemoryError, RuntimeError, ValueError, TypeError, KeyError, OSError)  # of one run's work
SCHEDULER_GONE = "The cluster's scheduler is gone. Resume once it is back."


def drive(registry: Registry, record: RunRecord, heartbeat: Heartbeat) -> None:
    """Carry a run, or all the runs of a sweep, to the end."""
    heartbeat.progress("connecting", 0, 0)
    with connected() as client:
        Driver(client, registry, record, heartbeat).run()


@contextmanager
def connected() -> Iterator[Any]:
    """A client of the cluster at ``$HEADVIZ_DASK``."""
    try:
        from distributed import Client
    except ImportError:
        raise RunError("The cluster executor needs Dask: pip install 'headviz[cluster]'") from None

    address = cluster_address()
    _knock(address)
    try:
        client = Client(address, security=security(address), timeout=CONNECT, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise RunError(f"The cluster at {address} does not answer ({type(error).__name__}). Is it running?") from error
    try:
        yield client
    finally:
        with suppress(Exception):  # the work is recorded, so an error while closing does not matter
            client.close(timeout=2)


def _knock(address: str) -> None:
    """Fail at once where nothing listens: Dask's own client would go on trying for long."""
    parts = urlsplit(address)
    try:
        socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=KNOCK).close()
    except OSError as error:
        raise RunError(f"The cluster at {address} does not answer ({error}). Is it running?") from error


class Late(Exception):
    """A result does not arrive: its worker is gone and the work is done again, or the line is slow."""


class Driver:
    """One loop over all pieces of all the runs it carries."""

    def __init__(self, client: Any, registry: Registry, record: RunRecord, heartbeat: Heartbeat) -> None:
        self.client, self.registry, self.record, self.heartbeat = client, registry, record, heartbeat
        self.token = secrets.token_hex(8)
        self.finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.in_flight: dict[Any, tuple[Carrier, str, bool]] = {}
        self.carriers: list[Carrier] = []
        self.home: dict[tuple[str, str], str] = {}  # (run, folder) -> a worker that has it
        self._reported: dict[str, float] = {}
        self._patience = CONNECT  # seconds to wait for a result that is there
        self._room = 1  # pieces that may be in flight
        self._room_asked = 0.0  # when the workers were counted for it

    def run(self) -> None:
        self._check_workers()
        self.client.subscribe_topic(remote.TOPIC, self._report_progress)
        self.carriers = list(self._claim())
        self._report_steps()
        try:
            for carrier in list(self.carriers):
                with self._isolated(carrier):
                    self._finish_if_whole(carrier)  # its driver may have died after the last piece
            while self.carriers or self.in_flight:
                if self.heartbeat.cancelled():
                    raise Cancelled
                self._drop_cancelled()
                self._hand_out()
                self._take_in()
        except BaseException:
            self._stop_workers()
            raise
        if self.record.kind == SWEEP:
            self._finish_sweep()

    # the runs ---------------------------------------------------------------------------------

    def _claim(self) -> Iterator[Carrier]:
        if self.record.kind != SWEEP:
            yield Carrier(self.registry, self.record)
            return
        for child in self.registry.records(parent=self.record.id, states=[QUEUED]):
            token = secrets.token_hex(8)
            with suppress(IllegalTransition):  # cancelled in the meantime
                self.registry.take_one(child.id, token)
                claimed = self.registry.apply(
                    child.id, CLAIM, claim=token, worker=self.record.worker, started=time.time()
                )
                try:
                    yield Carrier(self.registry, claimed)
                except UserError as error:
                    self._end(claimed, FAIL, **outcome_of(error))

    def _drop_cancelled(self) -> None:
        """End the runs of a sweep that were cancelled one by one."""
        for carrier in [c for c in self.carriers if c.record is not self.record]:
            if carrier.files.cancel_flag.exists():
                self.carriers.remove(carrier)
                self._end(carrier.record, STOP)

    def _end(self, record: RunRecord, event: str, **outcome: Any) -> None:
        with suppress(IllegalTransition):
            self.registry.apply(record.id, event, claim=record.claim, ended=time.time(), **outcome)

    def _finish_sweep(self) -> None:
        children = self.registry.records(parent=self.record.id)
        state = of_sweep([c.state for c in children])
        if state == DONE:
            self.registry.apply(self.record.id, FINISH, claim=self.record.claim, ended=time.time())
            return
        failed = [c.id for c in children if c.state != DONE]
        raise RunError(f"{len(failed)} of {len(children)} runs did not finish: {', '.join(failed[:8])}. Each says why.")

    # pieces -----------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        """Submit ready pieces in the order of the runs, so that the first runs finish first."""
        if monotonic() - self._room_asked >= 2:  # the number changes slowly, and asking takes a round trip
            self._room_asked = monotonic()
            self._room = AHEAD * max(1, sum(self.client.nthreads().values()))
        busy = {(c.record.id, p) for c, p, _ in self.in_flight.values()}
        for carrier in list(self.carriers):
            for piece in carrier.ready():
                if len(self.in_flight) >= self._room:
                    return
                if (carrier.record.id, piece) not in busy:
                    self._submit(carrier, piece, with_files=False)

    def _submit(self, carrier: Carrier, piece: str, with_files: bool) -> None:
        record, order = carrier.record, carrier.order(piece)
        home = self.home.get((record.id, order.needs[0])) if order.needs and not with_files else None
        future = self.client.submit(
            remote.perform,
            self.token,
            record.id,
            record.kind,
            record.spec,
            record.threads,
            order,
            remote.pack(carrier.files.results, order.needs) if with_files else None,
            plugins.codes_of(record.spec),
            key=f"headviz-{record.id}-{piece}-{secrets.token_hex(4)}",
            pure=False,
            resources={"GPU": 1} if record.device.startswith("cuda") else None,
            workers=[home] if home else None,
            allow_other_workers=bool(home),
        )
        self._await(future, carrier, piece, with_files)

    def _await(self, future: Any, carrier: Carrier, piece: str, with_files: bool) -> None:
        self.in_flight[future] = (carrier, piece, with_files)
        future.add_done_callback(self.finished.put)

    def _take_in(self) -> None:
        try:
            future = self.finished.get(timeout=0.1)
        except queue.Empty:
            self._check_alive()
            return
        carrier, piece, with_files = self.in_flight.pop(future)
        if carrier not in self.carriers:
            return  # its run has ended
        try:
            result, files, worker = self._result(future)
        except remote.Missing:
            if with_files:
                raise
            self._submit(carrier, piece, with_files=True)
            return
        except Late:
            if self.client.status != "running":
                raise RunError(SCHEDULER_GONE) from None
            self._check_alive()
            self._patience *= 2
            self._await(future, carrier, piece, with_files)
            return
        except FAULTS as error:
            self._failed(carrier, error)
            return
        self._alive = monotonic()
        with self._isolated(carrier):
            remote.unpack(carrier.files.results, files)
            self.home |= {(carrier.record.id, folder): worker for folder in remote.folders(files)}
            carrier.absorb(piece, result)
            self._report_steps()
            self._finish_if_whole(carrier)

    def _result(self, future: Any) -> Any:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        late = False
        try:
            return future.result(timeout=self._patience)
        except TimeoutError as error:
            late = future.status != "error"  # else it is the work's own error
            if late:
                raise Late from error
            raise
        except KilledWorker as error:
            raise RunError(
                "Several workers of the cluster died at the same piece of work, probably out of memory. "
                "Give them more, or use smaller batches, then resume."
            ) from error
        except FutureCancelledError as error:
            raise RunError(SCHEDULER_GONE) from error
        finally:
            if not late:
                future.release()

    def _finish_if_whole(self, carrier: Carrier) -> None:
        if not carrier.ready():
            carrier.end()
            self.carriers.remove(carrier)

    @contextmanager
    def _isolated(self, carrier: Carrier) -> Iterator[None]:
        """A fault here ends this run, and leaves the others of its sweep alone."""
        try:
            yield
        except FAULTS as error:
            self._failed(carrier, error)

    def _failed(self, carrier: Carrier, error: BaseException) -> None:
        if carrier.record is self.record:
            raise error
        if not isinstance(error, UserError):
            with suppress(OSError), carrier.files.log.open("a", encoding="utf-8") as log:
                traceback.print_exception(error, file=log)
        self.carriers.remove(carrier)
        self._end(carrier.record, FAIL, **outcome_of(error))

    def _stop_workers(self) -> None:
        """Stop the workers, cancel what waits and record the runs of a sweep; the sweep's own end is recorded later."""
        with suppress(Exception):  # if the cluster is gone, its work has stopped already
            self.client.run(remote.cancel, self.token, wait=False)
            self.client.cancel(list(self.in_flight), force=True, asynchronous=False)
        if self.record.kind == SWEEP:
            for carrier in self.carriers:
                self._end(carrier.record, self.heartbeat.ending, error=self.heartbeat.reason)

    # the cluster ------------------------------------------------------------------------------

    def _check_workers(self) -> None:
        """Refuse workers with another version of headviz, and note those with more than one thread."""
        try:
            self.client.wait_for_workers(1, timeout=GONE)
        except TimeoutError:
            raise RunError(f"The cluster has had no worker for {GONE:.0f} s. Resume once it has some.") from None
        facts = self.client.run(remote.facts)
        version = remote.facts()["version"]
        for worker, fact in facts.items():
            if fact["version"] != version:
                raise RunError(
                    f"Worker {worker} has headviz {fact['version']}, this machine {version}. "
                    "Install one version everywhere."
                )
        threaded = sum(n > 1 for n in self.client.nthreads().values())
        words = f"{len(facts)} workers"
        if threaded:
            words += f"; {threaded} have several threads and use one: start them with --nthreads 1"
        self.registry.note(self.record.id, "cluster", words)
        self._alive = monotonic()

    def _check_alive(self) -> None:
        if monotonic() - self._alive < 5:
            return
        if self.client.status != "running":
            raise RunError(SCHEDULER_GONE)
        if self.client.nthreads():
            self._alive = monotonic()
        elif monotonic() - self._alive > GONE:
            raise RunError(f"The cluster has had no worker for {GONE:.0f} s. Resume once it has some.")

    # what readers see -------------------------------------------------------------------------

    def _report_steps(self) -> None:
        self.heartbeat.stepped(*map(sum, zip((0, 0, 0, 0), *(c.counts for c in self.carriers), strict=True)))

    def _report_progress(self, event: Any) -> None:
        """Take in a worker's progress; called by Dask's own thread."""
        _, content = event
        if not isinstance(content, dict):
            return
        run = str(content.get("run"))
        if run == self.record.id:
            self.heartbeat.progress(str(content["phase"]), int(content["done"]), int(content["total"]))
            return
        carrier = next((c for c in self.carriers if c.record.id == run), None)
        if carrier is None or monotonic() - self._reported.get(run, 0.0) < 1:
            return
        self._reported[run] = monotonic()
        report = {k: content[k] for k in ("phase", "done", "total")}
        report |= {"beat": monotonic(), "place": place(), "time": time.time(), "attempt": carrier.record.attempt}
        with suppress(RunError, OSError):
            write_json(carrier.files.progress, report, durable=False)
