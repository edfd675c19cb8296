"""`arise engines install|list|serve`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, ConfigPaths, Overrides, config_files, one_message, say, say_json

app = typer.Typer(
    help="Install, list and serve libraries that sample and train outside this process.", no_args_is_help=True
)


class Library(StrEnum):
    """What can be installed."""

    VLLM = "vllm"
    AREAL = "areal"
    VERL = "verl"


class Device(StrEnum):
    """What the environment is for."""

    CPU = "cpu"
    CUDA = "cuda"


@app.command(epilog="Example: arise engines install areal")
def install(
    name: Annotated[Library, typer.Argument(help="vllm samples; areal and verl train.")],
    folder: Annotated[Path | None, typer.Option("--dir", help="Where to put it; default: the cache.")] = None,
    device: Annotated[Device, typer.Option(help="The device it will compute on.")] = Device.CUDA,
    as_json: AsJson = False,
) -> None:
    """Make the environment of a library, with pinned versions; takes minutes and about 3 GB."""
    with one_message():
        from arise.engines.environments import default_folder
        from arise.engines.environments import install as make
        from arise.errors import AriseError, Exit

        place = folder or default_folder(name)
        try:
            made = make(name, place.expanduser().absolute(), device, lambda text: None if as_json else say(text))
        except ValueError as error:
            remedy = "fix what the message names and run the command again: it continues where it stopped"
            raise AriseError("engines", Exit.ENGINE, str(error), "the environment is not usable", remedy) from None
    say_json({"name": name, "folder": str(made)}) if as_json else say(f"{name} is ready: {made}")


@app.command("list", epilog="Example: arise engines list")
def show(as_json: AsJson = False) -> None:
    """Show the environments and whether each can be used."""
    from arise.engines.environments import listed

    found = listed()
    if as_json:
        say_json([{"name": e.name, "folder": str(e.folder), "ready": not e.problem, "about": e.about} for e in found])
        return
    for each in found:
        say(f"{each.name:6} {each.about}\n       {each.problem or f'ready in {each.folder}'}")


@app.command(epilog="Example: arise engines serve configs/paper.toml --host 0.0.0.0 --port 8000")
def serve(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    number: Annotated[int, typer.Option(min=0, help="Which server of its machine this is; picks its GPUs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run one sampling server in the foreground, for a run on another machine (`policy.sampler.addresses`).

    Anyone who reaches the port can change the weights: allow only the driver.
    """
    import os

    with one_message():
        from arise.compose.remote import server_command
        from arise.config.file import load_config

        command, environment = server_command(load_config(config_files(paths), overrides or []), host, port, number)
    if as_json:
        say_json({"address": f"http://{host}:{port}"})
    os.execve(command[0], command, {**os.environ, **environment})  # noqa: S606 - the server replaces this process
