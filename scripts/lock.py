"""Print the installed version of everything that `.[train,dev,docs]` needs: `make lock`.

Only names and versions, so that the file holds on any package registry and any machine.
"""

from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT, EXTRAS = "arise-rl", ("train", "dev", "docs")


def closure() -> dict[str, str]:
    """Return the installed version of every direct and indirect requirement, by name."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(PROJECT, extra) for extra in ("", *EXTRAS)]
    while waiting:
        name, extra = pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform, or not wanted by any extra that is installed
        if name != PROJECT:
            found[name] = installed.version.partition("+")[0]
        for line in installed.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(needed.name), chosen) for chosen in ("", *needed.extras)]
    return found


if __name__ == "__main__":
    print("# Versions that `make test` passed with. Made by `make lock`, installed by `make setup LOCKED=1`.")
    for name, version in sorted(closure().items()):
        print(f"{name}=={version}")
