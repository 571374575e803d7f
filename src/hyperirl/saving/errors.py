"""What is raised when a reward or policy cannot be saved or loaded."""


class SavingError(ValueError):
    """What cannot be saved or loaded: why not, and what to do."""
