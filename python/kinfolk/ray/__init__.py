"""Clustering on a Ray cluster: sets that are larger than one machine. ``pip install 'kinfolk[ray]'``.

The command is ``python -m kinfolk.ray cluster SHARD... -o DIR``, the function :func:`cluster`. Both find the labels of
``kinfolk cluster`` on one file of all rows, to the row.

All nodes must see the shards and the directory of the job, at the same paths, and have the same version of kinfolk.
"""

from ._cluster import cluster

__all__ = ["cluster"]
