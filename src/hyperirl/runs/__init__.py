"""Run folders, and arrays in files: written all or nothing, read without pickles."""

from hyperirl.runs import atomic as atomic
from hyperirl.runs.arrays import ArraysError as ArraysError
from hyperirl.runs.arrays import load_arrays as load_arrays
from hyperirl.runs.arrays import load_metadata as load_metadata
from hyperirl.runs.arrays import named_arrays as named_arrays
from hyperirl.runs.arrays import save_arrays as save_arrays
from hyperirl.runs.checked import as_dataclass as as_dataclass
from hyperirl.runs.checked import mapping as mapping
from hyperirl.runs.errors import RunError as RunError
from hyperirl.runs.folder import RunFolder as RunFolder
