"""What is raised when demonstrations cannot be used."""


class DemosError(ValueError):
    """Demonstrations that cannot be used: what was given, why not, and what to do."""
