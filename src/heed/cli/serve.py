"""`heed serve`: translation and text generation over HTTP."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.options import Compute, Ensemble, Quiet, warn_if_not_usable
from heed.core.errors import UsageError
from heed.core.progress import message, warn

if TYPE_CHECKING:
    from heed.memory.shared import SharedMemory
    from heed.serve.engine.catalogue import Catalogue
    from heed.tasks.predictor import Predictor

Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; a model is named after its folder.")]
REQUIRED = ("fastapi", "starlette", "uvicorn", "prometheus_client", "python_multipart", "multipart")
"""Modules of the extra `heed[serve]`."""


@dataclass(frozen=True)
class ServerFlags:
    """Address of the server, and access to it."""

    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all networks.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on (0: any free port).", min=0, max=65535)] = 8000
    api_keys: Annotated[Path | None, typer.Option(help="File of accepted API keys, one per line.")] = None
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Additional host name by which clients reach the server (repeatable; * for any)."),
    ] = None
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL by which clients reach the server through a proxy; its host is allowed."),
    ] = None
    memory: Annotated[
        Path | None, typer.Option(help="Translation memory: stores suggestions, and answers exact matches.")
    ] = None
    guide: Annotated[
        bool, typer.Option("--guide", help="Let similar sentences of --memory guide translations, which is slower.")
    ] = False
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="Web origin whose pages may use the API (CORS; repeatable).")
    ] = None


@dataclass(frozen=True)
class LimitFlags:
    """Limits on requests."""

    rate: Annotated[int, typer.Option(help="Maximum requests per minute from one client (0: unlimited).", min=0)] = 0
    queue: Annotated[
        int, typer.Option(help="Maximum number of requests in progress, and of waiting sentences.", min=1, max=4096)
    ] = 256
    timeout: Annotated[float, typer.Option(help="Maximum seconds for a request.", min=0.1)] = 60.0
    max_characters: Annotated[int, typer.Option(help="Maximum characters of a request.", min=1, max=1_000_000)] = 10_000


def serve(
    *, runs: Runs, ensemble: Ensemble = None, server: ServerFlags, limits: LimitFlags, compute: Compute,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Serve runs over HTTP.

    Offers LibreTranslate's API, OpenAI's completions and embeddings, heed's own API, and a web page. On SIGUSR1, a
    running server looks at the run folders again and loads those that have changed, without losing a request.

    Example:

      heed serve runs/en-de runs/de-fr --port 8000

      curl localhost:8000/translate -d q="Two dogs." -d source=en -d target=fr
    """
    if ensemble and len(runs) > 1:
        raise UsageError(
            "--ensemble combines other runs with a single RUN, but several were given. Leave it out, or give one RUN."
        )
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until the models are served, which it would change
    from heed.core.allocator import share_one_heap

    try:
        from heed.serve.app import make_app
        from heed.serve.gate import LOCAL_HOSTS, Hosts, public_url, web_origin
        from heed.serve.server import bound_socket, url_of
        from heed.serve.server import serve as run_server
        from heed.serve.service import make_service
    except ModuleNotFoundError as error:
        if error.name not in REQUIRED:
            raise
        raise UsageError(
            f"heed serve needs {error.name}, which is not installed: pip install 'heed[serve]'."
        ) from error
    from heed.memory.shared import SharedMemory
    from heed.serve.auth import ApiKeys
    from heed.serve.engine.catalogue import names_of
    from heed.serve.engine.change_over import ChangeOver
    from heed.serve.limits import Limits
    from heed.serve.telemetry import Log

    memory = SharedMemory(server.memory) if server.memory is not None else None
    if server.guide and memory is None:
        raise UsageError("--guide needs the translation memory that guides translations: give --memory.")
    keys = ApiKeys.read(server.api_keys) if server.api_keys is not None else ApiKeys()
    own_url, own_host = public_url(server.public_url) if server.public_url is not None else ("", "")
    origins = list(map(web_origin, server.cors_origin or ()))
    hosts = Hosts(server.host, [*(server.allowed_host or ()), *filter(None, [own_host])])
    share_one_heap()

    with bound_socket(server.host, server.port) as listener:
        names = names_of(runs)
        load = _loader(partial(compute.load, searches_in_threads=True, ensemble=ensemble or ()), server.guide, quiet)
        catalogue = _opened(runs, names, load, memory if server.guide else None)
        if server.guide and not any(direction.is_guided for direction in catalogue.directions):
            raise UsageError(
                "--guide needs a translator that generates word by word, and none of these runs is one: leave it out."
            )
        if memory is not None:
            _say_what_is_used(memory, catalogue, quiet)
        request_limits = Limits(queue=limits.queue, seconds=limits.timeout, characters=limits.max_characters)
        service = make_service(catalogue, request_limits, keys, limits.rate, Log(quiet), memory, own_url)
        url = url_of(listener)
        if server.host not in LOCAL_HOSTS and not keys.required:
            warn("anyone who can reach this address can use the server. Restrict it with --api-keys.", quiet)

        def ready() -> None:
            message(f"{', '.join(names)} at {url} (page, LibreTranslate and OpenAI APIs); stop with Ctrl-C", quiet)

        app = make_app(service, origins, hosts)
        folders = dict(zip(names, runs, strict=True))
        load_again = _loader(partial(compute.open_run, ensemble=ensemble or ()), server.guide, quiet)
        change_over = ChangeOver(catalogue, folders, load_again, service.worker, service.log)
        code = run_server(app, service, listener, ready, change_over.start)
    raise typer.Exit(code)


def _opened(
    runs: Sequence[Path], names: Sequence[str], load: Callable[[Path], Predictor], guide: SharedMemory | None
) -> Catalogue:
    """The runs in memory, opened in a thread that ends, which takes the compute threads it started with it.

    With more of these than cores, OpenMP lets them sleep between any two products, and those of the worker would be
    late. The runs are in no variable, so that a model can be freed when another has taken its place.
    """
    from heed.serve.engine.catalogue import Catalogue

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(
            Catalogue.of_runs, list(pool.map(load, map(Path.resolve, runs))), names, guide
        ).result()  # there too, as a memory that guides a model is read by it


def _say_what_is_used(memory: SharedMemory, catalogue: Catalogue, quiet: bool) -> None:
    """Say which languages of a memory are used for those of the models, and warn if none are."""
    from heed.memory.store import listed_pairs
    from heed.serve.engine.catalogue import codes_of

    pairs, used = memory.pairs(), set[tuple[str, str]]()
    for source, target in product(catalogue.languages, repeat=2):
        codes = codes_of(source, target)
        pair = memory.languages(*codes)
        if pair in pairs and catalogue.path(source, target):
            used.add(pair)
            if pair != codes:
                message(f"{memory.path}: its translations from {pair[0]} to {pair[1]} are used", quiet)
    if pairs and not used:
        warn(
            f"{memory.path} has translations from {listed_pairs(pairs)}, but none for a pair of languages of these "
            "runs: they are not used.", quiet,
        )  # fmt: skip


def _loader(load: Callable[..., Predictor], guide: bool, quiet: bool) -> Callable[[Path], Predictor]:
    """Opens runs to serve them; `guide`: those that a translation memory can guide for PyTorch's search."""
    from heed.serve.engine.catalogue import can_be_guided

    def opened(folder: Path) -> Predictor:
        loaded = load(folder)
        if guide and can_be_guided(loaded):
            loaded = load(folder, engine="torch")
        warn_if_not_usable(loaded, quiet)
        return loaded

    return opened
