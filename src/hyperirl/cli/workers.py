"""Where an environment of Gymnasium's is stepped: options of several commands."""

import contextlib
import functools
import sys
from collections.abc import Iterator

from hyperirl.cli.arguments import Flag, Maybe, command


@command
class Workers:
    """For slow environments of Gymnasium's."""

    workers: Maybe[int] = None
    """Step shards of the environments in so many processes. Another number gives
    another run; a run that is resumed or evaluated keeps its own by default."""
    ray: Maybe[tuple[str, ...]] = None
    """Step them on Ray instead: on a cluster, if its address is given, or on one
    started here, which only this machine can reach. The results are the same."""
    trust_cluster: Flag = False
    """Join the cluster at that address although its machines could run code here."""

    @property
    def on_ray(self) -> bool:
        """Whether the workers are actors of Ray."""
        return self.ray is not None

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Has Ray running meanwhile, if it was asked for."""
        from hyperirl.experiments.cluster import check_trusted, running

        if self.workers is not None and self.workers < 0:
            raise ValueError(f"`--workers` must not be negative, got {self.workers}.")
        if self.ray is None:
            yield
            return
        if len(self.ray) > 1:
            raise ValueError(f"`--ray` takes one address, got {' '.join(self.ray)}.")
        address = self.ray[0] if self.ray else None
        check_trusted(address, self.trust_cluster)
        say = functools.partial(print, file=sys.stderr)
        with running(address, say):
            yield

    def check_counted(self) -> None:
        """Refuses Ray without a number, for who has no run to take it from."""
        if self.on_ray and not self.workers:
            raise ValueError(
                "`--ray` needs `--workers N`: the same number of workers gives the "
                "same results, wherever they are."
            )
