"""Build and try the image without a container engine: ``sudo python3 docker/replay.py``.

Reads the Dockerfile beside it and carries out its instructions one by one, each in a layer of its own, over a fresh system of
the distribution that the base image is of (debootstrap), in namespaces of its own. Then it runs the entry point as a job would:
as another user, without a network, on a read-only file system, killed, stopped and resumed. Last, it says what it did not do.

Needs root on Linux, Python 3.11 or newer, debootstrap, util-linux, and a way to the package indexes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import container
import dockerfile
from container import Image, Options
from dockerfile import Instruction, Stage

HERE = Path(__file__).resolve().parent
CONTEXT = HERE.parent

SUITES = {"22.04": "jammy", "24.04": "noble"}

KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

AS_IN_IMAGES = """\
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Acquire::Languages "none";
"""
"""The images of Ubuntu tell apt to keep no packages and no caches."""


@dataclass
class Replay:
    """A build: where layers are kept, the images of the stages so far, and what was not carried out as an engine would."""

    cache: Path
    images: dict[str, Image] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def differ(self, text: str) -> None:
        """Note a difference, once."""
        if text not in self.differences:
            self.differences.append(text)

    def build(self, stages: list[Stage]) -> Image:
        """Carry out all stages; return the image of the last."""
        image = Image([])
        for stage in stages:
            print(f"== stage {stage.name} from {stage.base}", flush=True)
            known = self.images.get(stage.base)
            image = known.copy() if known else self.base(stage.base)
            Builder(self, image).carry_out(stage.instructions)
            self.images[stage.name] = image
        return image

    # ---- the base image ------------------------------------------------------------------------------------------------------

    def base(self, name: str) -> Image:
        """Return a fresh system of the distribution that an image's tag names."""
        match = re.search(r"ubuntu(\d\d\.\d\d)", name)
        if match is None or match[1] not in SUITES:
            sys.exit(f"replay.py: the distribution of {name} is not known; known are Ubuntu {', '.join(SUITES)}")
        suite = SUITES[match[1]]
        folder = self.cache / f"base-{suite}"
        if not folder.is_dir():
            self.bootstrap(suite, folder)
        if not KEYS.exists():
            self.differ("The signature of the minimal system was not checked: this machine lacks the distribution's keys.")
        self.differ(
            f"The base image was not pulled, and its digest not checked: {name}. A minimal system of its distribution "
            f"({suite}, by debootstrap) stands in for it, without what NVIDIA adds: libcudart, the forward-compatible driver, "
            "the variables NVIDIA_*, CUDA's folders in PATH, and the address of NVIDIA's own packages."
        )
        return Image([folder], env={"PATH": PATH})

    def bootstrap(self, suite: str, folder: Path) -> None:
        """Install a minimal system with the updates of the suite."""
        scripts = Path(tempfile.mkdtemp(prefix="debootstrap-", dir=self.cache))
        shutil.copytree("/usr/share/debootstrap", scripts, dirs_exist_ok=True, symlinks=True)
        script = scripts / "scripts" / suite
        if not script.exists():  # all suites of Ubuntu share one, and an older debootstrap lacks the name
            script.symlink_to("gutsy")
        command = ["debootstrap", "--variant=minbase", "--components=main,universe", suite, str(folder)]
        command.insert(1, f"--keyring={KEYS}" if KEYS.exists() else "--no-check-gpg")
        print(f"== {' '.join(command)}", flush=True)
        log = subprocess.run(command, env={**os.environ, "DEBOOTSTRAP_DIR": str(scripts)}, capture_output=True, text=True)
        shutil.rmtree(scripts)
        if log.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            sys.exit(f"replay.py: debootstrap failed\n{log.stdout[-2000:]}{log.stderr[-2000:]}")
        sources = folder / "etc/apt/sources.list"
        line = sources.read_text(encoding="utf-8").strip()
        updates = [line.replace(f" {suite} ", f" {suite}-{pocket} ") for pocket in ("updates", "security")]
        sources.write_text("\n".join([line, *updates]) + "\n", encoding="utf-8")
        for package in folder.glob("var/cache/apt/archives/*.deb"):
            package.unlink()
        (folder / "etc/apt/apt.conf.d/docker-clean").write_text(AS_IN_IMAGES, encoding="utf-8")


@dataclass
class Builder:
    """The state of a stage."""

    replay: Replay
    image: Image
    arguments: dict[str, str] = field(default_factory=dict)

    def carry_out(self, instructions: list[Instruction]) -> None:
        """Carry out the instructions of a stage."""
        for item in instructions:
            getattr(self, f"do_{item.name.lower()}", self.unknown)(item)

    def unknown(self, item: Instruction) -> None:
        """Refuse what would silently be left out."""
        sys.exit(f"replay.py: line {item.line}: {item.name} is not carried out by this script")

    def expand(self, text: str) -> str:
        """Replace variables as the engine does."""
        return dockerfile.substitute(text, {**self.arguments, **self.image.env})

    # ---- layers --------------------------------------------------------------------------------------------------------------

    def layer(self, item: Instruction, content: str) -> tuple[Path, bool]:
        """Return the folder of an instruction's layer, and whether it was made before."""
        below = [str(layer) for layer in self.image.layers]
        settings = [self.image.env, self.arguments, self.image.user, self.image.workdir]
        state = [[below, *settings], item.name, item.flags, item.text, content]
        key = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:16]
        folder = self.replay.cache / key / "upper"
        done = (self.replay.cache / key / "done").exists()
        if not done:
            shutil.rmtree(folder.parent, ignore_errors=True)
            folder.mkdir(parents=True)
        print(f"== line {item.line}: {item.name} {item.text[:100]}{' (made before)' if done else ''}", flush=True)
        return folder, done

    def keep(self, item: Instruction, folder: Path) -> None:
        """Add a finished layer to the image. An image keeps whole seconds of the times of files."""
        if not (folder.parent / "done").exists():
            for path in [folder, *folder.rglob("*")]:
                status = path.lstat()
                os.utime(path, (int(status.st_atime), int(status.st_mtime)), follow_symlinks=False)
            (folder.parent / "done").touch()
        self.image.layers.append(folder)
        self.image.made_by.append((f"{item.name} {item.text}", folder))

    def do_run(self, item: Instruction) -> None:
        """Run a command, as the user, in the folder and with the variables of here."""
        folder, done = self.layer(item, "")
        if not done:
            options = network(self.replay)
            options.env.update(self.arguments)
            command = item.words() if item.is_list() else ["/bin/sh", "-c", item.text]
            begun = time.perf_counter()
            status, output = container.run(self.image, command, options, folder)
            (folder.parent / "log").write_text(output, encoding="utf-8")
            if status:
                sys.exit(f"{output[-6000:]}\nreplay.py: line {item.line}: exit status {status}")
            print("".join(f"   {line}\n" for line in output.splitlines()[-2:]), end="")
            print(f"   {time.perf_counter() - begun:.0f} s", flush=True)
            shutil.rmtree(folder.parent / "work", ignore_errors=True)
        self.keep(item, folder)

    def do_copy(self, item: Instruction) -> None:
        """Copy from the context, as .dockerignore leaves it, or from a stage."""
        *sources, target = [self.expand(word) for word in item.words()]
        names_folder = target.endswith("/") or len(sources) > 1
        target = os.path.normpath(os.path.join(self.image.workdir, target))
        stage = item.flags.get("from")
        with tempfile.TemporaryDirectory(prefix="copy-", dir=self.replay.cache) as scratch:
            if stage is None:
                origin = Path(scratch)
                files = context_files(origin, sources)
                content = json.dumps(files, sort_keys=True)
                origins = [origin / source for source in sources]
            else:
                origins, content = [flatten(self.replay.images[stage], source, Path(scratch)) for source in sources], ""
                content = json.dumps([str(layer) for layer in self.replay.images[stage].layers])
            folder, done = self.layer(item, content)
            if not done:
                for source in origins:
                    place = folder / target.lstrip("/")
                    place = place / source.name if names_folder and not source.is_dir() else place
                    place.parent.mkdir(parents=True, exist_ok=True)
                    if source.is_dir():
                        shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
                    else:
                        shutil.copy2(source, place)
        self.keep(item, folder)

    def do_workdir(self, item: Instruction) -> None:
        """Change the folder, and make it."""
        self.image.workdir = os.path.normpath(os.path.join(self.image.workdir, self.expand(item.text)))
        folder, _ = self.layer(item, "")
        (folder / self.image.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.keep(item, folder)

    # ---- settings ------------------------------------------------------------------------------------------------------------

    def do_arg(self, item: Instruction) -> None:
        """Set a build argument to its default."""
        self.arguments |= {name: self.expand(value) for name, value in item.pairs().items()}

    def do_env(self, item: Instruction) -> None:
        """Set variables."""
        self.image.env |= {name: self.expand(value) for name, value in item.pairs().items()}

    def do_user(self, item: Instruction) -> None:
        """Change the user, who must be given by numbers."""
        if re.fullmatch(r"\d+:\d+", item.text) is None:
            sys.exit(f"replay.py: line {item.line}: expected UID:GID, found {item.text}")
        self.image.user = item.text

    def do_stopsignal(self, item: Instruction) -> None:
        """Set the signal of ``docker stop``."""
        self.image.stop_signal = item.text

    def do_entrypoint(self, item: Instruction) -> None:
        """Set the command."""
        self.image.entrypoint = item.words()

    def do_cmd(self, item: Instruction) -> None:
        """Set the arguments."""
        self.image.cmd = item.words()

    def do_label(self, item: Instruction) -> None:
        """Labels change nothing here."""

    def do_healthcheck(self, item: Instruction) -> None:
        """Only "there is none" can be carried out by doing nothing."""
        if item.text != "NONE":
            self.unknown(item)


def network(replay: Replay) -> Options:
    """Return the options of a step that may download, with what pip is told on this machine to find its index."""
    env = {name: value for name, value in os.environ.items() if re.fullmatch(r"PIP_(INDEX_URL|CERT|.*TIMEOUT)|\w+_proxy", name)}
    certificates = env.get("PIP_CERT", "")
    if certificates:
        env["PIP_CERT"] = "/dev/certificates"
    if env:
        replay.differ(f"Steps of the build were given this machine's {', '.join(sorted(env))}.")
    return Options(env=env, network=True, certificates=certificates)


def context_files(folder: Path, sources: list[str]) -> dict[str, str]:
    """Copy what is named, and not ignored, from the context to a folder; return the hashes of the files."""
    patterns = dockerfile.ignore_patterns((CONTEXT / ".dockerignore").read_text(encoding="utf-8"))
    hashes: dict[str, str] = {}
    for source in sources:
        origin = CONTEXT / source
        files = sorted(origin.rglob("*")) if origin.is_dir() else [origin]
        before = len(hashes)
        for path in files:
            name = path.relative_to(CONTEXT).as_posix()
            if path.is_file() and not dockerfile.ignored(name, patterns):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / name)
                hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        if len(hashes) == before:
            sys.exit(f"replay.py: COPY {source}: nothing of it is in the context; see .dockerignore")
    return hashes


def flatten(image: Image, path: str, folder: Path) -> Path:
    """Return a folder of an image in one piece."""
    target = folder / path.lstrip("/")
    target.mkdir(parents=True)
    options = Options(volume=(folder, "/mnt"))
    status, output = container.run(image, ["/bin/cp", "-a", f"{path}/.", f"/mnt{path}"], options)
    if status:
        sys.exit(f"replay.py: COPY --from: {output}")
    return target


def sizes(image: Image) -> None:
    """Print what each layer adds to the image."""
    print("\n== layers above the base image: compressed, and on the disk")
    total = [0, 0]
    for text, folder in image.made_by:
        packed, size = container.compressed(folder), container.unpacked(folder)
        total = [total[0] + packed, total[1] + size]
        print(f"   {packed / 1e6:8.1f} MB {size / 1e6:8.1f} MB  {' '.join(text.split())[:90]}")
    print(f"   {total[0] / 1e6:8.1f} MB {total[1] / 1e6:8.1f} MB  together")


def main() -> None:
    """Build, try, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cache", type=Path, help="keep the layers there, and use those of before (default: none are kept)")
    parser.add_argument("--build-only", action="store_true", help="do not try the image")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("replay.py: needs root, for namespaces and mounts")
    with tempfile.TemporaryDirectory(prefix="replay-") as scratch:
        cache = (options.cache or Path(scratch)).resolve()
        cache.mkdir(parents=True, exist_ok=True)
        replay = Replay(cache)
        image = replay.build(dockerfile.stages(dockerfile.parse((HERE / "Dockerfile").read_text(encoding="utf-8"))))
        sizes(image)
        failures = 0
        if not options.build_only:
            import trials

            failures = trials.run_all(image)
        replay.differ("No GPU was used: the compiled kernels are found, but that they run on a card is not shown here.")
        print("\n== what was not as an engine would do it")
        print("".join(f"   - {text}\n" for text in replay.differences), end="")
        sys.exit(f"replay.py: {failures} trials failed" if failures else 0)


if __name__ == "__main__":
    main()
