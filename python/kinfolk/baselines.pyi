from collections.abc import Callable

import numpy as np

__all__: list[str]

# Generated from the registry of methods on import; `help(kinfolk.baselines.hdbscan)` shows the parameters.
aro: Callable[..., np.ndarray]
cdp: Callable[..., np.ndarray]
chinese_whispers: Callable[..., np.ndarray]
dbscan: Callable[..., np.ndarray]
dbscan_knn: Callable[..., np.ndarray]
facemap: Callable[..., np.ndarray]
fc_es: Callable[..., np.ndarray]
hac: Callable[..., np.ndarray]
hdbscan: Callable[..., np.ndarray]
infomap: Callable[..., np.ndarray]
kmeans: Callable[..., np.ndarray]
meanshift: Callable[..., np.ndarray]
minibatch_kmeans: Callable[..., np.ndarray]
optics: Callable[..., np.ndarray]
spectral: Callable[..., np.ndarray]
