"""Demonstrations: reading, checking, writing, summarizing and collecting them."""

from hyperirl.demos.checks import check_against as check_against
from hyperirl.demos.collecting import collect as collect
from hyperirl.demos.demos import Demos as Demos
from hyperirl.demos.demos import split as split
from hyperirl.demos.episodes import Episode as Episode
from hyperirl.demos.episodes import from_arrays as from_arrays
from hyperirl.demos.episodes import from_episodes as from_episodes
from hyperirl.demos.errors import DemosError as DemosError
from hyperirl.demos.experts import QUICK as QUICK
from hyperirl.demos.experts import THOROUGH as THOROUGH
from hyperirl.demos.experts import Effort as Effort
from hyperirl.demos.experts import Expert as Expert
from hyperirl.demos.experts import soft_optimal_expert as soft_optimal_expert
from hyperirl.demos.flat import from_flat as from_flat
from hyperirl.demos.flat import to_flat as to_flat
from hyperirl.demos.loading import bundled as bundled
from hyperirl.demos.loading import check_writable as check_writable
from hyperirl.demos.loading import content_hash as content_hash
from hyperirl.demos.loading import environment_of as environment_of
from hyperirl.demos.loading import load as load
from hyperirl.demos.loading import save as save
from hyperirl.demos.provenance import Provenance as Provenance
from hyperirl.demos.starts import starting_in as starting_in
from hyperirl.demos.summary import Spread as Spread
from hyperirl.demos.summary import Summary as Summary
from hyperirl.demos.summary import summarize as summarize
