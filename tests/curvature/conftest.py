"""Matrices here are small, and every solver, type and shape is a program of its own."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def compile_quickly(quick_compilation):
    """All of these."""
