"""Names of the release before this one still work, and say what to use now."""

from __future__ import annotations

import importlib

import pytest

from countersign import resources


def test_standing_is_resources_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"countersign\.resources"):
        former = importlib.import_module("countersign.standing")
    assert former.Endpoint is resources.Endpoint
