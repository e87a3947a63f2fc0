"""Compares kinfolk's networks with PyTorch on the CPU: same set, same graphs, same threads, one after the other.

    pip install numpy scipy torch
    python bench/gcn_torch.py --kinfolk target/release/kinfolk --work /tmp/gcn
    python bench/gcn_torch.py --kinfolk target/release/kinfolk --work /tmp/gcn --only inference --only edges --json

quality    GCN-V of the published shape, trained in PyTorch (20 epochs, mean squared error to s_nbr, SGD with momentum
           0.9, weight decay 1e-5, learning rate 0.1 and a tenth after 50, 80 and 90%), then clusters of other
           identities at the tau that is best on THEIR labels; against `kinfolk train` and `kinfolk cluster` with the
           tau of the model, which has not seen them. "best tau" lines give kinfolk the same advantage. Pairwise F /
           BCubed F; best is the largest sum of both, tau by steps of 0.01. With --recipe paper kinfolk trains the same
           network in the same way, but in another order, from other weights, and without a tenth of the identities.
epoch      seconds of one epoch of GCN-V. An epoch is a step for each mini-batch of 90% of the rows and a look at the
           rest, as kinfolk has it; kinfolk also turns each mini-batch at random, PyTorch here does not.
inference  GCN-V applied to the test rows, adjacency included (scipy's sparse sums for PyTorch). Twice for PyTorch: with the
           product that published code uses, `torch.spmm` of a coordinate tensor, and with the fastest we found, compressed rows.
edges      GCN-E applied to the candidates of 20% of the test rows. PyTorch goes through them as the published code
           does, one small graph at a time; a sample is timed and scaled by the number of candidates.
memory     peak of GCN-V on the test rows, and what of it is neither features nor graph.

The set is `kinfolk synth --identities 4500 --split 0.6667 --seed 11` unless --train names such a directory. Graphs and
networks are stored in --work and reused. Times are the best of --repeat, the two sides taking turns; CPU-seconds of
kinfolk are those of the whole process with reading and writing, unless said otherwise.
"""

import argparse
import csv
import json
import os
from pathlib import Path
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sparse
import torch
from torch import nn

K = 80
SECTIONS = ("quality", "epoch", "inference", "edges", "memory")


# The networks, as published.


class GraphConv(nn.Module):
    """relu([X, A X] W + b)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2 * inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, joined):
        return torch.relu(torch.addmm(self.bias, joined, self.weight))


class GraphNetwork(nn.Module):
    """Graph convolutions, then Linear, PReLU, Linear; names of the parameters are those of published checkpoints."""

    def __init__(self, dim, widths, outputs=1):
        super().__init__()
        self.layers = len(widths)
        for layer, width in enumerate(widths):
            self.add_module(f"conv{layer + 1}", GraphConv(dim, width))
            dim = width
        self.classifier = nn.Sequential(nn.Linear(dim, dim), nn.PReLU(dim), nn.Linear(dim, outputs))

    def embed(self, joined, aggregate=None):
        """The last convolution's output; `joined` is [X, A X], `aggregate` multiplies with A."""
        x = self.conv1(joined)
        for layer in range(1, self.layers):
            x = getattr(self, f"conv{layer + 1}")(torch.cat([x, aggregate(x)], 1))
        return x

    def forward(self, joined, aggregate=None):
        return self.classifier(self.embed(joined, aggregate))


# Graphs, targets, trees and scores.


def adjacency_of(ids, similarities):
    """D^-1 (A + I), A the larger of both directions of every edge."""
    n, k = ids.shape
    # Similarities below zero are no edges; a stored zero is one, but adds nothing.
    values = np.maximum(similarities, 0).ravel()
    edges = sparse.csr_matrix((values, ids.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    both = edges.maximum(edges.T) + sparse.identity(n, dtype=np.float32, format="csr")
    return (sparse.diags(1 / np.asarray(both.sum(1)).ravel()) @ both).tocsr().astype(np.float32)


def torch_csr(matrix):
    offsets, columns = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
    return torch.sparse_csr_tensor(offsets, columns, torch.from_numpy(matrix.data), matrix.shape)


def torch_coo(matrix):
    matrix = matrix.tocoo()
    indices = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    return torch.sparse_coo_tensor(indices, torch.from_numpy(matrix.data), matrix.shape)


def s_nbr(ids, similarities, labels):
    """Equation 1 of the paper."""
    sign = np.where(labels[ids] == labels[:, None], 1.0, -1.0)
    return ((similarities * sign).sum(1) / ids.shape[1]).astype(np.float32)


def higher(ids, confidence):
    """Which neighbours are more confident; of equal ones, those of smaller id."""
    own, other = confidence[:, None], confidence[ids]
    return (other > own) | ((other == own) & (ids < np.arange(len(ids))[:, None]))


def nearest_candidates(ids, similarities, confidence):
    """The parent of every row, itself where it has none, and the similarity."""
    candidate = higher(ids, confidence)
    first = candidate.argmax(1)[:, None]
    parent = np.take_along_axis(ids, first, 1)[:, 0]
    similarity = np.clip(np.take_along_axis(similarities, first, 1)[:, 0], 0, 1)
    return np.where(candidate.any(1), parent, np.arange(len(ids))), similarity


def cut(parent, similarity, tau):
    root = np.where(similarity > np.float32(tau), parent, np.arange(len(parent)))
    while True:
        next_root = root[root]
        if np.array_equal(next_root, root):
            return root
        root = next_root


def scores(truth, predicted):
    """Pairwise and BCubed F, in percent."""

    def harmonic(precision, recall):
        return 100 * 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    def pairs(counts):
        return float((counts * (counts - 1) // 2).sum())

    _, truth, of_truth = np.unique(truth, return_inverse=True, return_counts=True)
    _, predicted, of_predicted = np.unique(predicted, return_inverse=True, return_counts=True)
    cell, both = np.unique(truth * len(of_predicted) + predicted, return_counts=True)
    squares = both.astype(float) ** 2 / len(truth)
    bcubed = harmonic(
        (squares / of_predicted[cell % len(of_predicted)]).sum(), (squares / of_truth[cell // len(of_predicted)]).sum()
    )
    if not pairs(of_predicted):
        return 0.0, bcubed
    return harmonic(pairs(both) / pairs(of_predicted), pairs(both) / pairs(of_truth)), bcubed


def best_cut(truth, parent, similarity):
    """tau by 0.01 with the best sum of both F, and them."""
    grid = [(round(0.01 * step, 2), *scores(truth, cut(parent, similarity, 0.01 * step))) for step in range(100)]
    return max(grid, key=lambda entry: entry[1] + entry[2])


# Running and timing.


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def in_turns(repeat, *sides):
    """The fastest run of each side, which returns (wall, cpu, whatever else)."""
    runs = [[side() for side in sides] for _ in range(repeat)]
    return [min(side, key=lambda run: run[0]) for side in zip(*runs)]


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.work = Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.split = Path(arguments.train) if arguments.train else self.work / "split"
        self.results = {}
        self.loaded = {}
        torch.set_num_threads(arguments.threads)
        # That compressed rows are new, and that their indices are not checked.
        warnings.filterwarnings("ignore", message="Sparse")

    def say(self, text=""):
        print(text, file=sys.stderr if self.arguments.json else sys.stdout, flush=True)

    def row(self, section, name, text, **values):
        self.results.setdefault(section, {})[name] = values
        self.say(f"  {name:44} {text}")

    def kinfolk(self, *words):
        """Runs the command; gives what it printed (JSON), its wall and its CPU seconds."""
        command = [str(word) for word in (self.arguments.kinfolk, *words, "--threads", self.arguments.threads)]
        # The shell in between excludes the memory of this process from the command's peak, which a process inherits.
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[4:])}: {done.stderr.strip()}")
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout, wall, cpu

    # What the sections share, each made once.

    def once(self, name, make):
        if name not in self.loaded:
            self.loaded[name] = make()
        return self.loaded[name]

    def file(self, part, what):
        if not self.split.exists():
            self.kinfolk("synth", self.split, "--identities", 4500, "--split", 0.6667, "--seed", 11)
        return self.split / f"{part}_{what}.npy"

    def features(self, part):
        return self.once(f"{part} features", lambda: np.load(self.file(part, "features")).astype(np.float32))

    def labels(self, part):
        return self.once(f"{part} labels", lambda: np.load(self.file(part, "labels")))

    def graph_file(self, part):
        path = self.work / f"{part}_k{K}.npz"
        if not path.exists():
            self.kinfolk("knn", self.file(part, "features"), "-k", K, "-o", path, "--json")
        return path

    def graph(self, part):
        def read():
            arrays = np.load(self.graph_file(part))
            return arrays["ids"].astype(np.int64), arrays["similarities"]

        return self.once(f"{part} graph", read)

    def adjacency(self, part):
        return self.once(f"{part} adjacency", lambda: adjacency_of(*self.graph(part)))

    def joined(self, part):
        """[X, A X]."""

        def make():
            x = self.features(part)
            return torch.from_numpy(np.concatenate([x, self.adjacency(part) @ x], 1))

        return self.once(f"{part} joined", make)

    def targets(self, part):
        return torch.from_numpy(s_nbr(*self.graph(part), self.labels(part)))[:, None]

    def trained(self):
        """Some GCN-V for where only the cost matters; after one epoch its confidences are like those in use."""
        path = self.work / "gcn_v_one_epoch.pth"
        network = GraphNetwork(self.features("test").shape[1], [512])
        if not path.exists():
            torch.manual_seed(0)
            network = GraphNetwork(self.features("test").shape[1], [512])
            train(network, self.joined("train"), self.targets("train"), 1, 1024)
            torch.save(network.state_dict(), path)
        network.load_state_dict(torch.load(path, weights_only=True))
        return network

    def model(self):
        """The same GCN-V and a GCN-E of random weights as a model of kinfolk."""
        network = self.trained()
        torch.manual_seed(1)
        edges = GraphNetwork(512, [512, 512, 256, 256])
        path = self.work / "imported.safetensors"
        torch.save(edges.state_dict(), self.work / "gcn_e.pth")
        self.kinfolk("import", self.work / "gcn_v_one_epoch.pth", self.work / "gcn_e.pth", "-o", path)
        return path, network, edges

    def cluster(self, model, method, *options):
        """The parents, similarities and labels that kinfolk gives the test rows."""
        out = self.work / f"kinfolk_{method}"
        report, _, _ = self.kinfolk(
            "cluster", self.file("test", "features"), "--graph", self.graph_file("test"), "--model", model,
            "--method", method, "-o", out, "--json", *options,
        )  # fmt: skip
        return report, out

    # The sections.

    def quality(self):
        self.torch_quality()
        if not self.arguments.torch_only:
            self.kinfolk_quality()

    def torch_quality(self):
        options = self.arguments
        train_x, train_y = self.joined("train"), self.targets("train")
        torch.manual_seed(options.seed)
        network = GraphNetwork(train_x.shape[1] // 2, [512])
        path = self.work / f"gcn_v_batch{options.batch}_seed{options.seed}_epochs{options.epochs}.pth"
        if path.exists():
            network.load_state_dict(torch.load(path, weights_only=True))
        else:

            def report(epoch, loss, wall, cpu):
                self.say(f"    epoch {epoch + 1:2}: loss {loss:.6f}, {wall:.1f} s ({cpu:.1f} CPU-s)")

            _, wall, cpu = timed(lambda: train(network, train_x, train_y, options.epochs, options.batch, report))
            self.say(f"  PyTorch trained in {wall:.0f} s ({cpu:.0f} CPU-s)")
            torch.save(network.state_dict(), path)
        errors = {}
        for part in ("train", "test"):
            y = self.targets(part)
            confidence, embeddings = apply(network, self.joined(part))
            errors[part] = float(((confidence - y) ** 2).mean())
            correlation = np.corrcoef(confidence[:, 0], y[:, 0])[0, 1]
            text = f"{errors[part]:.5f} (variance {float(y.var()):.5f}, correlation {correlation:.4f})"
            self.row("quality", f"PyTorch, error on {part}", text, mse=errors[part], correlation=correlation)
        truth, confidence = self.labels("test"), confidence[:, 0].numpy()
        rebuilt = self.work / f"{path.stem}_k{K}.npz"
        if not rebuilt.exists():
            unit = self.work / f"{path.stem}_f_l.npy"
            np.save(unit, nn.functional.normalize(embeddings).numpy())
            self.kinfolk("knn", unit, "-k", K, "-o", rebuilt, "--json")
            unit.unlink()
        arrays = np.load(rebuilt)
        graphs = {"rebuilt graph": (arrays["ids"].astype(np.int64), arrays["similarities"])}
        graphs["graph as it is"] = self.graph("test")
        for name, graph in graphs.items():
            self.best(f"PyTorch GCN-V, {name}, best tau", truth, *nearest_candidates(*graph, confidence))
        # What confidence could do at best: the targets themselves.
        perfect = self.targets("test")[:, 0].numpy()
        for name, graph in graphs.items():
            self.best(f"true s_nbr, {name}, best tau", truth, *nearest_candidates(*graph, perfect))

    def best(self, name, truth, parent, similarity):
        tau, pairwise, bcubed = best_cut(truth, parent, similarity)
        text = f"{pairwise:6.2f} / {bcubed:6.2f}   tau {tau:.2f}"
        self.row("quality", name, text, tau=tau, pairwise=pairwise, bcubed=bcubed)

    def kinfolk_quality(self):
        model = self.arguments.model
        if not model:
            model = self.work / f"kinfolk_{self.arguments.recipe}.safetensors"
            report, wall, cpu = self.kinfolk(
                "train", self.file("train", "features"), self.file("train", "labels"), "-o", model, "--json",
                "--graph", self.graph_file("train"), "--epochs", self.arguments.epochs, "--seed", self.arguments.seed,
                "--method", self.arguments.method, "--recipe", self.arguments.recipe, "--batch", self.arguments.batch,
            )  # fmt: skip
            self.say(f"  kinfolk trained in {wall:.0f} s ({cpu:.0f} CPU-s): {json.dumps(report['config'])}")
        truth = self.labels("test")
        for method in ("gcn-v", "gcn-ve")[: 1 + (self.arguments.method == "gcn-ve")]:
            report, out = self.cluster(model, method)
            tau = report["parameters"]["tau"]
            pairwise, bcubed = scores(truth, np.load(out / "labels.npy"))
            text = f"{pairwise:6.2f} / {bcubed:6.2f}   tau {tau:.2f} of the model"
            self.row("quality", f"kinfolk {method}", text, tau=tau, pairwise=pairwise, bcubed=bcubed)
            self.best(f"kinfolk {method}, best tau", truth, *read_tree(out / "clusters.csv"))
        ours, theirs = (self.results["quality"][name] for name in
                        ("kinfolk gcn-v, best tau", "PyTorch GCN-V, rebuilt graph, best tau"))  # fmt: skip
        difference = [ours[f] - theirs[f] for f in ("pairwise", "bcubed")]
        self.say(f"  kinfolk gcn-v less PyTorch, best tau of each: {difference[0]:+.2f} / {difference[1]:+.2f} points")

    def epoch(self):
        options = self.arguments
        train_x, train_y = self.joined("train"), self.targets("train")
        held = len(train_x) // 10
        torch.manual_seed(0)
        network = GraphNetwork(train_x.shape[1] // 2, [512])
        times = []
        epochs = max(2, options.repeat)

        def report(epoch, loss, wall, cpu):
            with torch.no_grad():
                _, more, more_cpu = timed(lambda: [network(x) for x in train_x[:held].split(options.batch)])
            times.append((wall + more, cpu + more_cpu))

        train(network, train_x[held:], train_y[held:], epochs, options.batch, report)
        ours = min(times)

        def kinfolk(count):
            report, wall, cpu = self.kinfolk(
                "train", self.file("train", "features"), self.file("train", "labels"), "-o",
                self.work / "epochs.safetensors", "--json", "--graph", self.graph_file("train"),
                "--method", "gcn-v", "--rotate", "true", "--epochs", count, "--batch", options.batch,
            )  # fmt: skip
            seconds = [entry["seconds"] for entry in report["gcn_v"]["epochs"] if "seconds" in entry]
            return wall, cpu, seconds

        one, many = kinfolk(1), kinfolk(1 + epochs)
        by_difference = ((many[0] - one[0]) / epochs, (many[1] - one[1]) / epochs)
        theirs = (min(many[2]), by_difference[1]) if many[2] else by_difference
        how = "as it says" if many[2] else f"({1 + epochs} epochs less 1) / {epochs}"
        self.pair("epoch", f"GCN-V epoch, batches of {options.batch}", ours, theirs, f"kinfolk's: {how}")

    def pair(self, section, name, torch_time, kinfolk_time, note=""):
        ratio, cpu_ratio = (torch_time[i] / kinfolk_time[i] for i in (0, 1))
        text = (
            f"PyTorch {torch_time[0]:.2f} s ({torch_time[1]:.2f} CPU-s), kinfolk {kinfolk_time[0]:.2f} s "
            f"({kinfolk_time[1]:.2f} CPU-s): {ratio:.2f} times ({cpu_ratio:.2f} by CPU)"
        )
        self.row(section, name, text, torch=torch_time, kinfolk=kinfolk_time, ratio=ratio, cpu_ratio=cpu_ratio)
        if note:
            self.say(f"    {note}")

    def inference(self):
        model, network, _ = self.model()
        x = torch.from_numpy(self.features("test"))
        ids, similarities = self.graph("test")
        confidence, out = None, None

        def ours(tensor_of):
            @torch.no_grad()
            def run():
                nonlocal confidence
                matrix, *adjacency = timed(lambda: tensor_of(adjacency_of(ids, similarities)))
                joined, *product = timed(lambda: torch.cat([x, torch.spmm(matrix, x)], 1))
                confidence, *forward = timed(lambda: network(joined)[:, 0])
                wall, cpu = (sum(stage) for stage in zip(adjacency, product, forward))
                return wall, cpu, {"adjacency": adjacency[0], "product": product[0], "forward": forward[0]}

            return run

        def theirs():
            nonlocal out
            report, out = self.cluster(model, "gcn-v", "--no-rebuild", "--tau", 0.5)
            stages = {name: report["seconds"][name] for name in ("adjacency", "confidence")}
            return sum(stages.values()), report["cpu_seconds"], stages

        sides = ours(torch_coo), ours(torch_csr), theirs
        *torch_times, kinfolk_time = in_turns(self.arguments.repeat, *sides)
        with open(out / "clusters.csv") as file:
            found = np.array([float(line["confidence"]) for line in csv.DictReader(file)])
        worst = float(np.abs(found - confidence.numpy()).max())
        self.say(f"    {len(x)} x {x.shape[1]}, adjacency included; confidences differ by at most {worst:.1e}")
        for name, torch_time in zip(("GCN-V, coordinates in PyTorch", "GCN-V, compressed rows"), torch_times):
            stages = "; ".join(
                f"{name}: " + ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in time[2].items())
                for name, time in (("PyTorch", torch_time), ("kinfolk", kinfolk_time))
            )
            self.pair("inference", name, torch_time, kinfolk_time, stages)

    def edges(self):
        model, network, edges = self.model()
        rho = 0.2
        confidence, embeddings = apply(network, self.joined("test"))
        confidence = confidence[:, 0].numpy()
        f = nn.functional.normalize(embeddings)
        path = self.work / f"one_epoch_k{K}.npz"
        if not path.exists():
            np.save(self.work / "f_l.npy", f.numpy())
            self.kinfolk("knn", self.work / "f_l.npy", "-k", K, "-o", path, "--json")
            (self.work / "f_l.npy").unlink()
        arrays = np.load(path)
        ids, similarities = arrays["ids"].astype(np.int64), arrays["similarities"]
        used = np.argsort(-confidence, kind="stable")[: round(rho * len(ids))]
        candidate = higher(ids, confidence)
        # An only candidate needs no network.
        sizes = candidate[used].sum(1)
        used, sizes = used[sizes > 1], sizes[sizes > 1]
        sample = np.random.default_rng(0).choice(len(used), min(self.arguments.sample, len(used)), replace=False)
        scale = sizes.sum() / sizes[sample].sum()
        matrix = adjacency_of(ids, similarities)
        spent = [0.0, 0.0]

        @torch.no_grad()
        def one_by_one():
            for i in used[sample]:
                members = ids[i][candidate[i]]
                small = matrix[members][:, members].toarray()
                small = torch.from_numpy(small / small.sum(1, keepdims=True))
                rows = f[members] - f[i]
                begin = time.perf_counter(), time.process_time()
                edges(torch.cat([rows, small @ rows], 1), lambda x: small @ x)
                spent[0] += time.perf_counter() - begin[0]
                spent[1] += time.process_time() - begin[1]

        one_by_one()

        def ours():
            spent[:] = 0.0, 0.0
            _, wall, cpu = timed(one_by_one)
            return wall * scale, cpu * scale, spent[0] * scale, spent[1] * scale

        def theirs(share):
            def run():
                report, _ = self.cluster(model, "gcn-ve", "--rho", share, "--tau", 0.5)
                return report["seconds"]["connectivity"], report["cpu_seconds"]

            return run

        ours_time, with_e, without = in_turns(self.arguments.repeat, ours, theirs(rho), theirs(0))
        # CPU time of the whole command less that of one that does not use GCN-E.
        kinfolk_time = with_e[0], max(with_e[1] - without[1], 1e-9)
        note = f"{len(used)} vertices, {sizes.sum()} candidates; PyTorch: {len(sample)} of them, times {scale:.1f}"
        self.pair("edges", "GCN-E, subgraphs and forward", ours_time[:2], kinfolk_time, note)
        self.pair("edges", "GCN-E, forward alone in PyTorch", ours_time[2:], kinfolk_time)

    def memory(self):
        model, _, _ = self.model()
        report, _ = self.cluster(model, "gcn-v", "--no-rebuild", "--tau", 0.5)
        features, graph = self.features("test").nbytes, 8 * self.graph("test")[0].size
        peak = report["peak_memory_bytes"]
        rest = peak - features - graph
        text = (
            f"{peak / 1e6:.0f} MB: features {features / 1e6:.0f}, graph {graph / 1e6:.0f}, the rest {rest / 1e6:.0f} MB"
        )
        self.row("memory", "GCN-V, peak of kinfolk", text, peak=peak, features=features, graph=graph, rest=rest)


def read_tree(path):
    """Parents and similarities of `clusters.csv`; a row without a parent is its own."""
    with open(path) as file:
        lines = [(line["parent"], line["similarity"]) for line in csv.DictReader(file)]
    parent = np.array([int(p) if p not in ("", "-1") else i for i, (p, _) in enumerate(lines)])
    return parent, np.array([float(s or 0) for _, s in lines], dtype=np.float32)


@torch.no_grad()
def apply(network, joined):
    """Confidences and F_L, in blocks."""
    embeddings = [network.embed(block) for block in joined.split(8192)]
    return torch.cat([network.classifier(block) for block in embeddings]), torch.cat(embeddings)


def train(network, joined, targets, epochs, batch, report=None):
    """The published optimiser on mini-batches of rows of [X, A X]."""
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    milestones = [int(np.ceil(share * epochs)) for share in (0.5, 0.8, 0.9)]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)
    for epoch in range(epochs):

        def run():
            total = torch.zeros(())
            for rows in torch.randperm(len(joined)).split(batch):
                loss = nn.functional.mse_loss(network(joined[rows]), targets[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.detach() * len(rows)
            return float(total) / len(joined)

        loss, wall, cpu = timed(run)
        schedule.step()
        if report:
            report(epoch, loss, wall, cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinfolk", default="target/release/kinfolk")
    parser.add_argument("--work", default="gcn_torch", help="directory for what is made once")
    parser.add_argument("--train", metavar="DIR", help="a set of `kinfolk synth DIR --split`, if not the default one")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="section to run; several may be named")
    parser.add_argument("--torch-only", action="store_true", help="quality: only PyTorch's half")
    parser.add_argument("--model", help="quality: a model of `kinfolk train`, instead of training one")
    parser.add_argument("--recipe", default="tuned", choices=("tuned", "paper"), help="quality: how kinfolk trains")
    parser.add_argument("--method", default="gcn-v", choices=("gcn-v", "gcn-ve"), help="quality: what kinfolk trains")
    parser.add_argument("--batch", type=int, default=64, help="rows of a mini-batch; kinfolk's own default is 64")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sample", type=int, default=1000, help="edges: vertices that PyTorch is timed on")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, the table on stderr")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    # Threads of PyTorch wait for each other at every layer: on a busy machine it suffers most.
    bench.say(f"torch {torch.__version__}, {arguments.threads} threads, K = {K}, load {os.getloadavg()[0]:.1f} before")
    for section in SECTIONS:
        if not arguments.only or section in arguments.only:
            bench.say(section)
            getattr(bench, section)()
    if arguments.json:
        print(json.dumps(bench.results, indent=2))


if __name__ == "__main__":
    main()
