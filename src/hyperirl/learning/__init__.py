"""Learning a reward: the outer loop around everything else."""

from hyperirl.learning.config import LearnConfig as LearnConfig
from hyperirl.learning.config import complete as complete
from hyperirl.learning.config import from_dict as from_dict
from hyperirl.learning.config import paper as paper
from hyperirl.learning.kept import demos_of as demos_of
from hyperirl.learning.loop import Diverged as Diverged
from hyperirl.learning.loop import Result as Result
from hyperirl.learning.loop import check as check
from hyperirl.learning.loop import learn as learn
from hyperirl.learning.loop import resume as resume
from hyperirl.learning.loop import run as run
