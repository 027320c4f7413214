"""The installed wheel: its name, its version and its files."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path

import countersign
from conftest import REPOSITORY

FOLDER = REPOSITORY / "clients" / "python"
INSTALLED = distribution("countersign-gateway")


def test_the_tests_use_the_installed_wheel() -> None:
    assert Path(str(INSTALLED.locate_file("countersign"))) == Path(countersign.__file__).parent
    assert FOLDER not in Path(countersign.__file__).parents


def test_the_version_is_the_same_everywhere() -> None:
    typescript = json.loads((REPOSITORY / "clients" / "typescript" / "package.json").read_text())["version"]
    assert INSTALLED.version == countersign.__version__ == typescript


def test_the_wheel_has_every_source_file_and_no_other() -> None:
    source = FOLDER / "src"
    sources = {
        str(it.relative_to(source)) for it in source.rglob("*") if it.is_file() and "__pycache__" not in it.parts
    }
    files = {str(it) for it in INSTALLED.files or () if not re.search(r"\.dist-info/|__pycache__", str(it))}
    assert files == sources


def test_the_packages_that_build_are_those_of_the_checks() -> None:
    pinned = (FOLDER / "build-requirements.txt").read_text()
    lines = [line.split(" ")[0] for line in pinned.splitlines() if not line.startswith("#")]
    assert set(lines) <= set((FOLDER / "requirements.txt").read_text().splitlines())
