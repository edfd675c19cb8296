"""`arise models pull|list`."""

from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json

app = typer.Typer(help="Download and list pretrained models for the embedded engine.", no_args_is_help=True)


@app.command(epilog="Example: arise models pull smollm2-135m")
def pull(
    name: Annotated[str, typer.Argument(help="A name that `arise models list` shows.")] = "smollm2-135m",
    as_json: AsJson = False,
) -> None:
    """Download a model into the cache, check it and store it as safetensors."""
    with one_message():
        import logging

        from arise.engines.local.pretrained import cache_root
        from arise.engines.local.pretrained import pull as pull_model
        from arise.errors import AriseError, Exit
        from arise.observe.waits import bars
        from arise.text.progress import Progress

        try:
            with bars(), Progress(logging.getLogger(__name__), f"downloading and checking {name}", 1):
                folder = pull_model(name)
        except ValueError as error:
            what, remedy = str(error), "arise models list shows what can be pulled"
            raise AriseError("model", Exit.CONFIG, what, "nothing was pulled", remedy) from None
        except OSError as error:
            what = f"{error.filename or cache_root()}: {error.strerror or error}"
            remedy = "free disk space, or name another place for the cache: export ARISE_CACHE=FOLDER"
            raise AriseError("storage", Exit.STORAGE, what, "nothing was pulled", remedy) from None
    say_json({"name": name, "folder": str(folder)}) if as_json else say(f"{name} is ready: {folder}")


@app.command("list", epilog="Example: arise models list")
def show(as_json: AsJson = False) -> None:
    """Show the models that can be pulled, and the paths of the pulled ones."""
    from arise.engines.local.pretrained import available

    found = available()
    if as_json:
        say_json([{"name": m.name, "pulled": m.pulled, "folder": str(m.folder), "about": m.description} for m in found])
        return
    for model in found:
        say(f"{model.name}  {model.folder if model.pulled else 'not pulled'}  {model.description}")
