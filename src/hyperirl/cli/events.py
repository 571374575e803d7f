"""TensorBoard event files of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperirl.metrics import METRICS


def event_writer(out: Path) -> Callable[[dict[str, Any]], None]:
    """A function that writes a row of metrics, each with its title and meaning."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ValueError(
            "TensorBoard event files need tensorboardX, which is not installed; run "
            "`pip install 'hyperirl[tensorboard]'`."
        ) from error
    writer = SummaryWriter(str(out / "tensorboard"))

    def write(row: dict[str, Any]) -> None:
        for name, value in row.items():
            metric = METRICS[name]
            if name != "step" and isinstance(value, int | float):
                writer.add_scalar(
                    name,
                    value,
                    row["step"],
                    display_name=metric.title,
                    summary_description=f"{metric.unit}; {metric.meaning}",
                )
        writer.flush()

    return write
