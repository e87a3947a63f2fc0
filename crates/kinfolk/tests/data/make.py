"""Writes the files in this directory with NumPy and pyarrow, so that the readers are tested on files of other programs.

    python make.py      (numpy, pyarrow)

Every feature file holds the same matrix; its values are exact in float16. huge_dictionary.parquet and
damaged_page.parquet are not made here: the fuzzer found them.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

here = Path(__file__).parent
matrix = np.array([[3, 4, 0, 0], [1, 2, 2, 4], [-0.5, 0.5, -0.5, 0.5]], dtype="<f4")

for name, dtype in [("f2", "<f2"), ("f4", "<f4"), ("f8", "<f8"), ("big_f4", ">f4"), ("big_f8", ">f8")]:
    np.save(here / f"{name}.npy", matrix.astype(dtype))
np.save(here / "fortran.npy", np.asfortranarray(matrix))
for major in (2, 3):
    with open(here / f"version_{major}.npy", "wb") as file:
        np.lib.format.write_array(file, matrix, version=(major, 0))
np.save(here / "unit.npy", np.eye(3, 4, dtype="<f4"))
np.save(here / "structured.npy", np.zeros(2, dtype=[("x", "<f4"), ("y", "<f4")]))

np.savez(here / "stored.npz", features=matrix, other=-matrix)
np.savez_compressed(here / "deflated.npz", features=matrix.astype("<f8"), other=-matrix)
np.savez_compressed(here / "deflated_fortran.npz", np.asfortranarray(matrix))

matrix.tofile(here / "raw.bin")

ids = pa.array(["a", "b", "c"])
lists = {
    "list_f4_snappy": (pa.list_(pa.float32()), "snappy"),
    "large_list_f8_gzip": (pa.large_list(pa.float64()), "gzip"),
    "fixed_f2_zstd": (pa.list_(pa.float16(), 4), "zstd"),
}
for name, (kind, compression) in lists.items():
    rows = [[np.float16(v) for v in row] for row in matrix] if "f2" in name else matrix.tolist()
    table = pa.table({"id": ids, "face": pa.array(rows, type=kind)})
    pq.write_table(table, here / f"{name}.parquet", compression=compression)
broken = {
    "ragged": [[1.0, 2.0], [3.0, 4.0], [5.0]],
    "null_row": [[1.0, 2.0], None, [5.0, 6.0]],
    "null_value": [[1.0, 2.0], [3.0, None], [5.0, 6.0]],
    "nan": [[1.0, 2.0], [3.0, 4.0], [5.0, float("nan")]],
    "empty_lists": [[], [], []],
}
for name, rows in broken.items():
    pq.write_table(pa.table({"face": pa.array(rows, type=pa.list_(pa.float32()))}), here / f"{name}.parquet")
pq.write_table(pa.table({"face": pa.array([], type=pa.list_(pa.float32()))}), here / "no_rows.parquet")
pq.write_table(pa.table({"id": ids}), here / "no_lists.parquet")

labels = np.array([7, -1, 7, 100])
for name, dtype in [("i1", "i1"), ("big_i2", ">i2"), ("i8", "<i8")]:
    np.save(here / f"labels_{name}.npy", labels.astype(dtype))
np.save(here / "labels_column.npy", labels.astype("<i4").reshape(-1, 1))
np.save(here / "labels_bool.npy", np.array([True, False]))

# Vertices 0 and 1 are duplicates: itself comes second in row 1, and not at all in row 3.
neighbours = [[0, 1, 2], [0, 1, 2], [2, 0, 1], [2, 1, 0]]
distances = [[0, 0, 0.25], [0, 0, 0.25], [0, 0.25, 0.25], [0.5, 0.75, 0.75]]
published = np.array([*zip(neighbours, distances)], dtype="<f4")
np.savez_compressed(here / "published_f4.npz", data=published)
np.savez(here / "published_fortran_f8.npz", data=np.asfortranarray(published.astype("<f8")))
