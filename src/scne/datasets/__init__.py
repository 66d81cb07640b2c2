"""Data to try things on: the embedded sample, the paper's data sets, and rows made up in their likeness."""

from scne.datasets._beijing import load_beijing_air
from scne.datasets._errors import DatasetError
from scne.datasets._fetch import fetch, partial_bytes
from scne.datasets._generators import make_twitter_like, make_year_like, twitter_like_blocks, year_like_blocks
from scne.datasets._home import get_data_home
from scne.datasets._presets import DATASETS, PaperSplit, ZeroOne, paper_groups, paper_scaling, paper_split
from scne.datasets._records import DatasetRecord, Place, Remote, TextFile
from scne.datasets._store import Stored, find_stored, write_parquet
from scne.datasets._twitter import TWITTER_GROUPS, fetch_twitter_buzz
from scne.datasets._year import YEAR_GROUPS, fetch_year_prediction, load_year_sample

__all__ = [
    "DATASETS",
    "TWITTER_GROUPS",
    "YEAR_GROUPS",
    "DatasetError",
    "DatasetRecord",
    "PaperSplit",
    "Place",
    "Remote",
    "Stored",
    "TextFile",
    "ZeroOne",
    "fetch",
    "fetch_twitter_buzz",
    "fetch_year_prediction",
    "find_stored",
    "get_data_home",
    "load_beijing_air",
    "load_year_sample",
    "make_twitter_like",
    "make_year_like",
    "paper_groups",
    "paper_scaling",
    "paper_split",
    "partial_bytes",
    "twitter_like_blocks",
    "write_parquet",
    "year_like_blocks",
]
