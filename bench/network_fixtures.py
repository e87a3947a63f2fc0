"""Generates small PyTorch networks and their outputs for the tests of kinfolk-nn, and seeds for fuzzing.

    pip install numpy scipy torch
    python bench/network_fixtures.py [--tests crates/kinfolk-nn/tests/torch] [--seeds fuzz/seeds] [--kinfolk kinfolk]

Only needed to change them: what it writes is in the repository. One directory for each network:

    gcn_v_1   1 convolution, mean squared error                  network.pth
    gcn_v_3   3 convolutions, the same                           network.pth, in the layout before PyTorch 1.6
    gcn_e_1   4 convolutions, 1 output, the same                 network.pth
    gcn_e_2   4 convolutions, 2 outputs, log-softmax and NLL     network.pth, in that layout, names with "module.",
                                                                 under "state_dict"
    lgcn      4 convolutions, 2 outputs                          network.pth
    gcn_d     2 convolutions, the largest of all rows, 1 output  network.pth

and in each an expected.npz. Whatever is an answer was computed in double precision from float32 weights and inputs,
then rounded, so that all the error found in a comparison is kinfolk's. N = 24 vertices, K = 6, D = 8 columns.

    features (N x D, unit rows), ids, similarities (N x K), labels (N)   the graph, the same in all
    confidence (N), embeddings (N x width)                               gcn_v: the outputs, F_L
    confidence (N), vertices (V)                                         gcn_e: an input; the N / 2 most confident
    members, pair_vertices (R), outputs (R x C), connectivity (R)        gcn_e: candidates of each of `vertices` that
                                                                         has any, by ascending id, and the outputs
    shape (k1, k2, active), links (N x k1)                               lgcn: what a pivot sees, the probabilities
    sizes (P), members, scores (P)                                       gcn_d: proposals and their scores
    joined (R x 2D), offsets (R + 1), columns, values                    [X, A X] and A, in compressed rows; R = N
                                                                         for gcn_v, block-diagonal for gcn_e
    targets (R), loss                                                    s_nbr, or whether labels agree; a mean
                                                                         (these and what follows not for the last two)
    gradient, step1, step2                                               all parameters in one row: the gradient of
                                                                         the loss, and the weights after one and two
                                                                         steps (lr 0.1, momentum 0.9, decay 1e-5)

A directory more, end_to_end, is of both networks trained in a row on half of `kinfolk synth --identities 40 --dim 32
--seed 7 --split 0.5`, in double precision and with all rows in every step, and then applied to the other half:

    gcn_v.pth, gcn_e.pth        the weights before training
    losses_v, losses_e          the loss before each step
    confidence (N)              of the test rows, by GCN-V after training
    tau, scores_v, scores_ve    where links are cut (the best for GCN-V), and pairwise and BCubed F in percent

Parameters are in the order conv1 weight, conv1 bias, ..., hidden weight, bias, slopes, output weight, bias; every
weight is inputs x outputs, row by row. Numbers do not change from run to run; bytes of the older layout do, because
it has addresses in it.
"""

import argparse
import collections
import json
from pathlib import Path
import struct
import subprocess
import tempfile
import warnings

import numpy as np
from scipy.sparse import block_diag, csr_matrix
import torch
from torch import nn

from gcn_torch import GraphNetwork, adjacency_of, best_cut, cut, higher, nearest_candidates, s_nbr, scores, torch_coo

N, K, DIM = 24, 6, 8


def graph():
    """4 identities of 6 rows, near enough to each other that neighbours and candidates are mixed."""
    random = np.random.default_rng(5)
    labels = np.arange(N, dtype=np.int64) % 4
    rows = random.normal(size=(4, DIM))[labels] + 0.8 * random.normal(size=(N, DIM))
    features = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    similarities = features.astype(float) @ features.astype(float).T
    np.fill_diagonal(similarities, -2)
    ids = np.argsort(-similarities, axis=1, kind="stable")[:, :K]
    return features, ids, np.take_along_axis(similarities, ids, 1).astype(np.float32), labels


def network(seed, dim, widths, outputs):
    """Initial weights with added noise: biases of 0 and equal slopes would hide errors."""
    torch.manual_seed(seed)
    made = GraphNetwork(dim, widths, outputs)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return made


def flat(made, of=lambda parameter: parameter):
    """All parameters (or what `of` gives for each) in one row, weights as inputs x outputs."""
    parts = []
    for name, parameter in made.named_parameters():
        value = of(parameter).detach()
        transposed = name.startswith("classifier") and value.dim() == 2
        parts.append((value.T if transposed else value).reshape(-1))
    return torch.cat(parts).numpy().astype(np.float32)


def widths_of(made):
    return [getattr(made, f"conv{layer + 1}").bias.numel() for layer in range(made.layers)]


def answers(made, joined, matrix, targets):
    dense = torch.from_numpy(matrix.toarray().astype(float))
    joined = torch.from_numpy(joined)
    exact = GraphNetwork(joined.shape[1] // 2, widths_of(made), made.classifier[2].out_features).double()
    exact.load_state_dict(made.state_dict())
    optimiser = torch.optim.SGD(exact.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)

    def forward():
        outputs = exact(joined, lambda x: dense @ x)
        if outputs.shape[1] == 2:
            same = torch.from_numpy(targets.astype(np.int64))
            return outputs, nn.functional.nll_loss(nn.functional.log_softmax(outputs, 1), same)
        return outputs, nn.functional.mse_loss(outputs, torch.from_numpy(targets.astype(float))[:, None])

    found = {}
    embeddings = exact.embed(joined, lambda x: dense @ x).detach().numpy()
    for step in ("step1", "step2"):
        outputs, loss = forward()
        optimiser.zero_grad()
        loss.backward()
        if step == "step1":
            found |= {"outputs": outputs.detach().numpy(), "loss": loss.detach().numpy()}
            found["gradient"] = flat(exact, lambda parameter: parameter.grad)
        optimiser.step()
        found[step] = flat(exact)
    found |= {"joined": joined.numpy(), "targets": targets, "embeddings": embeddings}
    found |= {"offsets": matrix.indptr, "columns": matrix.indices, "values": matrix.data}
    return found


def vertices(made, features, ids, similarities, labels):
    matrix = adjacency_of(ids, similarities)
    matrix.sort_indices()
    x = features.astype(float)
    found = answers(made, np.concatenate([x, matrix.astype(float) @ x], 1), matrix, s_nbr(ids, similarities, labels))
    found["confidence"] = found.pop("outputs")[:, 0]
    return found


def edges(made, features, ids, similarities, labels):
    matrix = adjacency_of(ids, similarities)
    # Two are equal, so that their order is by id.
    confidence = np.random.default_rng(6).permutation(N).astype(np.float32) / N
    confidence[3] = confidence[17]
    chosen = np.lexsort((np.arange(N), -confidence))[: N // 2]
    x = features.astype(float)
    rows, blocks, members, own = [], [], [], []
    for i in chosen:
        candidates = np.sort(ids[i][higher(ids, confidence)[i]])
        if not len(candidates):
            continue
        block = matrix[candidates][:, candidates].toarray().astype(float)
        block /= block.sum(1, keepdims=True)
        difference = x[candidates] - x[i]
        rows.append(np.concatenate([difference, block @ difference], 1))
        blocks.append(csr_matrix(block))
        members.append(candidates)
        own.append(np.full(len(candidates), i))
    members, own = np.concatenate(members), np.concatenate(own)
    targets = (labels[members] == labels[own]).astype(np.float32)
    joined_matrix = block_diag(blocks, format="csr")
    joined_matrix.sort_indices()
    found = answers(made, np.concatenate(rows), joined_matrix, targets)
    outputs = found["outputs"]
    # With two outputs the second's share of the softmax.
    two = outputs.shape[1] == 2
    found["connectivity"] = 1 / (1 + np.exp(outputs[:, 0] - outputs[:, 1])) if two else outputs[:, 0]
    return found | {"confidence": confidence, "vertices": chosen, "members": members, "pair_vertices": own}


def forward(made, x, matrix, pooled=False):
    """The outputs for rows and a dense adjacency, in double precision."""
    exact = GraphNetwork(x.shape[1], widths_of(made), made.classifier[2].out_features).double()
    exact.load_state_dict(made.state_dict())
    dense = torch.from_numpy(matrix)
    joined = torch.from_numpy(np.concatenate([x, matrix @ x], 1))
    with torch.no_grad():
        rows = exact.embed(joined, lambda x: dense @ x)
        return exact.classifier(rows.max(0, keepdim=True).values if pooled else rows).numpy()


def links(made, features, ids, similarities, labels):
    """L-GCN: for each row the graph of the rows within two hops, with edges between nearest neighbours."""
    k1, k2, active = 5, 3, 3
    x = features.astype(float)
    found = []
    for pivot in range(N):
        first = ids[pivot][:k1]
        nodes = sorted({pivot, *first, *(j for i in first for j in ids[i][:k2])})
        matrix = np.zeros((len(nodes), len(nodes)))
        for a, i in enumerate(nodes):
            for j in ids[i][:active]:
                if j in nodes:
                    matrix[a, nodes.index(j)] = matrix[nodes.index(j), a] = 1
        matrix /= matrix.sum(1, keepdims=True)
        outputs = forward(made, x[nodes] - x[pivot], matrix)
        shares = 1 / (1 + np.exp(outputs[:, 0] - outputs[:, 1]))
        found.append([shares[nodes.index(j)] for j in first])
    return {"shape": np.array([k1, k2, active]), "links": np.array(found)}


def detections(made, features, ids, similarities, labels):
    """GCN-D: proposals relative to their means, with the share of affinity that stays inside as one more column."""
    matrix = adjacency_of(ids, similarities).toarray().astype(float)
    random = np.random.default_rng(7)
    x = features.astype(float)
    proposals = [np.sort(random.choice(N, size, replace=False)) for size in (1, 2, 5, 9, 17, N)]
    scores = []
    for members in proposals:
        block = matrix[members][:, members]
        inside = block.sum(1, keepdims=True)
        rows = np.concatenate([x[members] - x[members].mean(0), inside], 1)
        scores.append(forward(made, rows, block / inside, pooled=True)[0, 0])
    sizes = np.array([len(members) for members in proposals])
    return {"sizes": sizes, "members": np.concatenate(proposals), "scores": np.array(scores)}


# End to end.

SYNTH = ("--identities", "40", "--dim", "32", "--seed", "7", "--split", "0.5")
END_K, STEPS_V, STEPS_E, RHO = 20, 200, 100, 0.5


def nearest(features):
    """The exact graph of END_K neighbours."""
    similarities = features @ features.T
    np.fill_diagonal(similarities, -2)
    ids = np.argsort(-similarities, axis=1, kind="stable")[:, :END_K]
    return ids, np.take_along_axis(similarities, ids, 1)


def fitted(made, joined, matrix, targets, steps):
    """The network after so many steps on everything, by the published optimiser, and the loss before each."""
    exact = GraphNetwork(joined.shape[1] // 2, widths_of(made), 1).double()
    exact.load_state_dict(made.state_dict())
    optimiser = torch.optim.SGD(exact.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    milestones = [int(np.ceil(share * steps)) for share in (0.5, 0.8, 0.9)]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
    joined, targets = torch.from_numpy(joined), torch.from_numpy(targets)[:, None]
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(exact(joined, lambda x: torch.sparse.mm(matrix, x)), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return exact, losses


def joined_of(features, graph):
    matrix = adjacency_of(*graph).astype(float)
    return np.concatenate([features, matrix @ features], 1)


def applied(made, features):
    """The confidence of every row, F_L of unit length and its graph."""
    with torch.no_grad():
        embedding = made.embed(torch.from_numpy(joined_of(features, nearest(features))))
        confidence = made.classifier(embedding)[:, 0].numpy()
        rows = nn.functional.normalize(embedding).numpy()
    return confidence, rows, nearest(rows)


def candidate_sets(confidence, rows, graph, count):
    """Of the `count` most confident rows those with candidates: the rows, [X, A X] and A over all sets, and the members."""
    ids, similarities = graph
    matrix = adjacency_of(ids, similarities).astype(float)
    candidate = higher(ids, confidence)
    chosen = np.lexsort((np.arange(len(ids)), -confidence))[:count]
    own, members, joined, blocks = [], [], [], []
    for i in chosen[candidate[chosen].any(1)]:
        # Nearest first.
        found = ids[i][candidate[i]]
        block = matrix[found][:, found].toarray()
        block /= block.sum(1, keepdims=True)
        difference = rows[found] - rows[i]
        own.append(np.full(len(found), i))
        members.append(found)
        joined.append(np.concatenate([difference, block @ difference], 1))
        blocks.append(csr_matrix(block))
    own, members = np.concatenate(own), np.concatenate(members)
    return own, members, np.concatenate(joined), torch_coo(block_diag(blocks, format="csr"))


def write_end_to_end(directory, kinfolk):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([kinfolk, "synth", folder, *SYNTH], check=True, capture_output=True)
        part = {name: np.load(Path(folder) / f"{name}.npy") for name in
                ("train_features", "train_labels", "test_features", "test_labels")}  # fmt: skip
    train, test = part["train_features"].astype(float), part["test_features"].astype(float)
    labels, truth = part["train_labels"], part["test_labels"]
    graph = nearest(train)
    first_v, first_e = network(8, train.shape[1], [64], 1), network(9, 64, [32, 32, 16, 16], 1)
    goals = s_nbr(*graph, labels).astype(float)
    gcn_v, losses_v = fitted(first_v, joined_of(train, graph), None, goals, STEPS_V)

    confidence, rows, rebuilt = applied(gcn_v, train)
    own, members, joined, matrix = candidate_sets(confidence, rows, rebuilt, int(np.ceil(RHO * len(rows))))
    same = (labels[own] == labels[members]).astype(float)
    gcn_e, losses_e = fitted(first_e, joined, matrix, same, STEPS_E)

    confidence, rows, rebuilt = applied(gcn_v, test)
    parent, similarity = nearest_candidates(*rebuilt, confidence)
    tau, *scores_v = best_cut(truth, parent, similarity)
    own, members, joined, matrix = candidate_sets(confidence, rows, rebuilt, round(RHO * len(rows)))
    with torch.no_grad():
        connectivity = gcn_e(torch.from_numpy(joined), lambda x: torch.sparse.mm(matrix, x))[:, 0].numpy()
    for i in np.unique(own):
        found = np.flatnonzero(own == i)
        best = members[found[connectivity[found].argmax()]]
        parent[i], similarity[i] = best, np.clip(rows[i] @ rows[best], 0, 1)
    scores_ve = scores(truth, cut(parent, similarity, tau))
    print(f"end to end: loss {losses_v[0]:.4f} to {losses_v[-1]:.4f}, {losses_e[0]:.4f} to {losses_e[-1]:.4f}; F at", end=" ")
    print(f"tau {tau:.2f}: GCN-V {scores_v[0]:.2f} / {scores_v[1]:.2f}, and GCN-E {scores_ve[0]:.2f} / {scores_ve[1]:.2f}")
    found = {"losses_v": losses_v, "losses_e": losses_e, "confidence": confidence, "tau": [tau]}
    store(directory, found | {"scores_v": scores_v, "scores_ve": scores_ve}, first_v.state_dict(), "gcn_v.pth")
    torch.save(first_e.state_dict(), directory / "gcn_e.pth")


def store(directory, found, checkpoint, name="network.pth", **options):
    directory.mkdir(parents=True, exist_ok=True)
    torch.save(checkpoint, directory / name, **options)
    arrays = {}
    for name, value in found.items():
        value = np.asarray(value)
        arrays[name] = value.astype(np.int32 if value.dtype.kind in "iu" else np.float32)
    np.savez_compressed(directory / "expected.npz", **arrays)


OLD = {"_use_new_zipfile_serialization": False}


def write_tests(directory):
    parts = graph()
    shared = dict(zip(("features", "ids", "similarities", "labels"), parts))
    wide, narrow = [8, 8, 4, 4], [12, 10, 6]
    made = network(1, DIM, [12], 1)
    store(directory / "gcn_v_1", shared | vertices(made, *parts), made.state_dict())
    made = network(2, DIM, narrow, 1)
    store(directory / "gcn_v_3", shared | vertices(made, *parts), made.state_dict(), **OLD)
    made = network(3, DIM, wide, 1)
    store(directory / "gcn_e_1", shared | edges(made, *parts), made.state_dict())
    made = network(4, DIM, wide, 2)
    parallel = collections.OrderedDict((f"module.{name}", value) for name, value in made.state_dict().items())
    checkpoint = {"epoch": 7, "state_dict": parallel}
    store(directory / "gcn_e_2", shared | edges(made, *parts), checkpoint, **OLD)
    made = network(5, DIM, wide, 2)
    store(directory / "lgcn", shared | links(made, *parts), made.state_dict())
    made = network(6, DIM + 1, [8, 4], 1)
    store(directory / "gcn_d", shared | detections(made, *parts), made.state_dict())


def write_seeds(directory):
    """Checkpoints in every form that is read, and some that are refused; models with and without GCN-E."""
    checkpoints, models = directory / "checkpoint", directory / "model"
    checkpoints.mkdir(parents=True, exist_ok=True)
    models.mkdir(parents=True, exist_ok=True)
    small = network(1, 1, [2], 1).state_dict()
    pair = network(2, 2, [2, 1], 2).state_dict()

    def save(name, content, **options):
        # A name of its own would be a prefix of every member of the archive.
        with open(checkpoints / name, "wb") as file:
            torch.save(content, file, **options)

    save("zip.pth", small)
    save("old.pth", small, **OLD)
    save("two_outputs.pth", {"state_dict": {f"module.{name}": value for name, value in pair.items()}})
    save("half.pth", {name: value.half() for name, value in small.items()})
    save("brain_old.pth", {name: value.bfloat16() for name, value in small.items()}, **OLD)
    save("double.pth", {name: value.double() for name, value in small.items()})
    # Parameters of a module rather than a state_dict's tensors, and views of one storage.
    save("parameters.pth", dict(network(1, 1, [2], 1).named_parameters()))
    storage = torch.arange(32.0) / 32
    views = {name: torch.as_strided(storage, value.shape, value.stride(), 3) for name, value in small.items()}
    save("views.pth", views)
    save("views_old.pth", views, **OLD)
    save("transposed.pth", {name: value.t().contiguous().t() for name, value in small.items()})
    # Refused: integers, a tensor that is not known, code.
    save("integers.pth", {name: value.long() for name, value in small.items()})
    save("unknown.pth", small | {"bn1.running_mean": torch.zeros(2), "bn1.num_batches_tracked": torch.tensor(3)})
    save("module.pth", nn.Linear(1, 1))

    def model(name, tensors, **changes):
        """A .safetensors file: length of the header, the header, the numbers."""
        config = {"version": 1, "k": 80, "k_rebuild": 80, "tau": 0.7, "rho": 0.1, "m": 1, "rebuild": True} | changes
        header, content = {"__metadata__": {"kinfolk": json.dumps(config)}}, b""
        for key, value in sorted(tensors.items()):
            bytes_ = value.contiguous().numpy().tobytes()
            span = [len(content), len(content) + len(bytes_)]
            header[key] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": span}
            content += bytes_
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (models / name).write_bytes(struct.pack("<Q", len(text)) + text + content)

    gcn_v = {f"gcn_v.{name}": value for name, value in small.items()}
    gcn_e = {f"gcn_e.{name}": value for name, value in pair.items()}
    model("gcn_v.safetensors", gcn_v)
    model("gcn_ve.safetensors", gcn_v | gcn_e, rho=0.2, m=2)
    narrow = {f"gcn_e.{name}": value for name, value in small.items()}
    model("not_rebuilt.safetensors", gcn_v | narrow, rebuild=False)
    model("newer.safetensors", gcn_v, version=9)
    model("tau.safetensors", gcn_v, tau=1.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).parent.parent
    parser.add_argument("--tests", type=Path, default=root / "crates/kinfolk-nn/tests/torch")
    parser.add_argument("--seeds", type=Path, default=root / "fuzz/seeds")
    parser.add_argument("--kinfolk", default=str(root / "target/release/kinfolk"), help="for the set of end_to_end")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Sparse")
    write_tests(arguments.tests)
    write_end_to_end(arguments.tests / "end_to_end", arguments.kinfolk)
    write_seeds(arguments.seeds)


if __name__ == "__main__":
    main()
