"""Films of episodes; they need Pillow."""

from hyperirl.films.film import Format as Format
from hyperirl.films.film import episode_film as episode_film
from hyperirl.films.film import play as play
from hyperirl.films.scenes import Episode as Episode
from hyperirl.films.scenes import scene as scene
