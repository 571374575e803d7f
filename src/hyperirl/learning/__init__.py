"""Learning a reward: the outer loop around everything else."""

from hyperirl.learning.config import Config as Config
from hyperirl.learning.config import complete as complete
from hyperirl.learning.config import from_json as from_json
from hyperirl.learning.config import shown_steps as shown_steps
from hyperirl.learning.evaluating import evaluate as evaluate
from hyperirl.learning.evaluating import subject_of as subject_of
from hyperirl.learning.given import Given as Given
from hyperirl.learning.learn import create_folder as create_folder
from hyperirl.learning.learn import learn as learn
from hyperirl.learning.learn import make_options as make_options
from hyperirl.learning.learn import reopen as reopen
from hyperirl.learning.learn import resume as resume
from hyperirl.learning.learn import set_up as set_up
from hyperirl.learning.loop import Diverged as Diverged
from hyperirl.learning.loop import Stopped as Stopped
from hyperirl.learning.loop import run as run
from hyperirl.learning.result import Result as Result
from hyperirl.learning.setup import Setup as Setup
