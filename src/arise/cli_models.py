"""`arise models pull|list`."""

from typing import Annotated

import typer

app = typer.Typer(help="Pretrained models for the embedded engine.", no_args_is_help=True)


@app.command()
def pull(name: Annotated[str, typer.Argument(help="A name that `arise models list` shows.")] = "smollm2-135m") -> None:
    """Download a model into the cache, check it and keep it as safetensors."""
    from arise.engines.pretrained import pull as pull_model

    try:
        folder = pull_model(name)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    typer.echo(f"{name} is ready: {folder}")


@app.command("list")
def show() -> None:
    """Show the models that can be pulled, and where the pulled ones lie."""
    from arise.engines.pretrained import available

    for model in available():
        typer.echo(f"{model.name}  {model.folder if model.pulled else 'not pulled'}  {model.description}")
