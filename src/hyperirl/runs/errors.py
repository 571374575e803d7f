"""What is raised about run folders."""


class RunError(ValueError):
    """A run folder that cannot be used: what was given, why not, and what to do."""
