"""Write the sample that ships in the package: one station of the Beijing multi-site air-quality data.

python tools/embed_beijing_station.py ../shared/data/beijing_air.parquet
"""

import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

# The station with the fewest rows that lack a value.
STATION = "Nongzhanguan"
OUT = Path(__file__).parents[1] / "src/scne/datasets/data/beijing_nongzhanguan.parquet"


def main(source: str) -> None:
    """Copy the station's rows, as they are."""
    table = pq.read_table(source)
    rows = table.filter(pc.equal(table["station"], STATION)).drop_columns(["station"]).replace_schema_metadata()
    pq.write_table(rows, OUT, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main(sys.argv[1])
