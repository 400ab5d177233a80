"""`heed serve`: translate and generate for others, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Debug, Device, Precision, Quiet, Threads, use_threads


def serve(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders; each model is named as its folder.", metavar="RUN...")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is reached from other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on (0: any that is free).", min=0, max=65535)] = 8000,
    api_keys: Annotated[Path | None, typer.Option(help="File of the keys that are accepted, one a line.")] = None,
    rate: Annotated[int, typer.Option(help="Requests a minute of one client (0: any number).", min=0)] = 0,
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="A web page's origin that may call; may be repeated.")
    ] = None,
    queue: Annotated[
        int, typer.Option(help="Requests at work at once, and sentences that wait.", min=1, max=4096)
    ] = 256,
    timeout: Annotated[float, typer.Option(help="Seconds that one request may take.", min=0.1)] = 60.0,
    max_characters: Annotated[int, typer.Option(help="Of a request's texts.", min=1, max=1_000_000)] = 10_000,
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Serve runs: LibreTranslate's API, OpenAI's completions for language models, heed's own, and a page.

    Example:

      heed serve runs/en-de runs/de-fr --port 8000

      curl localhost:8000/translate -d q="Two dogs." -d source=en -d target=fr
    """
    import heed
    from heed.core.errors import UsageError
    from heed.core.progress import message, warn
    from heed.nn.device import share_one_heap

    try:
        from heed.serve.app import make_app
        from heed.serve.server import bound_socket, url_of
        from heed.serve.server import serve as run_server
        from heed.serve.service import make_service
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn", "prometheus_client", "python_multipart", "multipart"):
            raise
        raise UsageError(
            f"heed serve needs {error.name}, which is not installed: in heed's folder, pip install '.[serve]'"
        ) from error
    from heed.serve.auth import ApiKeys
    from heed.serve.engine.catalogue import Catalogue
    from heed.serve.limits import Limits
    from heed.serve.telemetry import Log

    keys = ApiKeys.read(api_keys) if api_keys is not None else ApiKeys()
    share_one_heap()
    with bound_socket(host, port) as listener:
        # In a thread of its own, which takes the threads that compute for it along when it ends: where there are more
        # of these than cores, OpenMP lets them sleep between any two products, and the worker's would be late.
        with ThreadPoolExecutor(1) as pool:
            use_threads(threads)
            loaded = list(pool.map(lambda run: heed.load(run, device, precision), runs))
        catalogue = Catalogue.of_runs(loaded)
        limits = Limits(queue=queue, seconds=timeout, characters=max_characters)
        service = make_service(catalogue, limits, keys, rate, Log(quiet))
        url = url_of(listener)
        if host not in ("127.0.0.1", "::1", "localhost") and not keys.required:
            warn("whoever reaches this address may use the server: give --api-keys, or leave out --host.", quiet)

        def ready() -> None:
            message(
                f"{', '.join(catalogue.models)} at {url} (page, LibreTranslate and OpenAI APIs); stop with Ctrl-C",
                quiet,
            )

        code = run_server(make_app(service, cors_origin or ()), service, listener, ready)
    raise typer.Exit(code)
