"""Albums: every verb against the command, errors, writers, input."""

import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk import Album, Kinfolk
from kinfolk._album import Change, Entry, Event, PersonItems, Question


@pytest.fixture(scope="module")
def rows():
    """Rows of an album and others that are added to it."""
    (X, _), (X_new, _) = kinfolk.synth(identities=40, dim=32, seed=7, split=0.7)
    return X, X_new


@pytest.fixture
def album(rows, tmp_path):
    return Album.create(tmp_path / "album", rows[0], keys=[f"k{row}" for row in range(len(rows[0]))])


@pytest.fixture
def printed(command, tmp_path):
    """What the command prints about an album in the same directory, as JSON."""

    def run(*words):
        done = subprocess.run([*command, "album", *map(str, words), "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def plain(value):
    """Named tuples as the command prints them."""
    if hasattr(value, "_asdict"):
        fields = {name: plain(field) for name, field in value._asdict().items()}
        absent = {"other", "before", "after", "undone_by"}
        return {name: field for name, field in fields.items() if field is not None or name not in absent}
    return [plain(field) for field in value] if isinstance(value, list) else value


def test_every_verb_is_that_of_the_command(rows, album, printed, tmp_path):
    """Python and the command do the same to two albums, one after the other, and then see the same of both."""
    X, X_new = rows
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "new.npy", X_new)
    (tmp_path / "keys.txt").write_text("".join(f"k{row}\n" for row in range(len(X))))
    (tmp_path / "new.txt").write_text("".join(f"n{row}\n" for row in range(len(X_new))))
    groups = [f"g{row // 2}" if row < 20 else "" for row in range(len(X_new))]
    (tmp_path / "groups.txt").write_text("".join(group + "\n" for group in groups))
    created = printed("create", "other", "x.npy", "--keys", "keys.txt")
    assert created["items"] == len(album) == len(X)
    keys = [f"n{row}" for row in range(len(X_new))]
    first, second = (person.id for person in album.people()[:2])
    a, b = album.person(first).items[0], album.person(second).items[0]
    changes = [
        (lambda: album.add(X_new, keys=keys, groups=groups), ["add", "other", "new.npy", "--keys", "new.txt", "--group", "groups.txt"]),
        (lambda: album.name(first, "Ada"), ["name", "other", first, "Ada"]),
        (lambda: album.same(a, b), ["same", "other", a, b]),
        (lambda: album.undo(), ["undo", "other"]),
        (lambda: album.apart(a, b), ["apart", "other", a, b]),
        (lambda: album.remove(["k5", "n3"]), ["remove", "other", "k5", "n3"]),
        (lambda: album.undo(), ["undo", "other"]),
        (lambda: album.undo(), ["undo", "other"]),
        (lambda: album.merge("Ada", second), ["merge", "other", "Ada", second]),
        (lambda: album.refresh(), ["refresh", "other"]),
    ]
    for change, words in changes:
        found = change()
        assert isinstance(found, Change) and plain(found) == printed(*words), words
    assert all(isinstance(event, Event) for event in album.history()[0].events)
    # What is asked, of the same album and of the other.
    for where in ("album", "other"):
        assert plain(album.people()) == printed("people", where)
        assert plain(album.person("Ada")) == printed("person", where, "Ada")
        assert plain(album.questions(4)) == printed("questions", where, "-n", 4)
        assert plain(album.verify()) == printed("verify", where)
        history = [{**entry, "time": ""} for entry in printed("history", where)]
        assert [{**plain(entry), "time": ""} for entry in album.history()] == history
        people, probabilities, new = album.assign(X_new, top=2)
        for row, assigned in enumerate(printed("assign", where, "new.npy", "--top", 2)):
            ids = [person["person"] for person in assigned["people"]]
            assert people[row].tolist() == (ids + [-1, -1])[:2]
            assert probabilities[row].tolist() == pytest.approx(([p["probability"] for p in assigned["people"]] + [0, 0])[:2])
            assert new[row] == pytest.approx(assigned["new"])
        out = tmp_path / f"out-{where}"
        exported = printed("export", where, "-o", out)
        ours = album.export(tmp_path / "ours")
        assert (ours.rows, ours.clusters) == (exported["rows"], exported["clusters"])
        assert (tmp_path / "ours/clusters.csv").read_bytes() == (out / "clusters.csv").read_bytes()
    assert isinstance(album.history()[0], Entry) and isinstance(album.person("Ada"), PersonItems)
    assert all(isinstance(question, Question) for question in album.questions())


def test_keys_and_labels_are_those_of_all_items(rows, album):
    X, X_new = rows
    assert album.keys == [f"k{row}" for row in range(len(X))]
    labels = album.labels
    assert labels.dtype == np.int64 and len(labels) == len(X) == len(album)
    people = album.people()
    assert repr(album) == f"Album({album.path!r}): {len(X)} items, {len(people)} people"
    table = pd.DataFrame(people).set_index("id")
    assert (table["size"] == pd.Series(labels).value_counts()).all()
    for person in people[:3]:
        assert album.person(person.id).items == [f"k{row}" for row in np.flatnonzero(labels == person.id)]
    # The clusters are those of the estimator.
    assert kinfolk.metrics.pairwise(Kinfolk().fit_predict(X), labels).f == 1
    album.add(X_new, keys=np.arange(len(X_new)))
    assert album.keys[len(X) :] == [str(row) for row in range(len(X_new))]


def test_questions_are_answered(album):
    question = album.questions(1)[0]
    change = album.apart(*question.items) if len(question.people) == 1 else album.same(*question.items)
    assert {event.kind for event in change.events} <= {"merged", "split", "created", "grew"} and change.events
    assert question.items not in [other.items for other in album.questions()]


def test_input_of_any_kind(rows, tmp_path):
    X, X_new = rows
    half = X.astype(np.float16)
    np.save(tmp_path / "x.npy", X)
    expected = Album.create(tmp_path / "plain", X)
    expected.add(X_new)
    for name, given, added in (
        ("double", X.astype(np.float64), np.asfortranarray(X_new)),
        ("memmap", np.load(tmp_path / "x.npy", mmap_mode="r"), 3 * X_new),
        ("frame", pd.DataFrame(X), pd.DataFrame(X_new).astype(np.float64)),
    ):
        album = Album.create(tmp_path / name, given, keys=pd.Series(range(len(X))))
        album.add(added)
        assert (album.labels == expected.labels).all() and album.keys == expected.keys, name
    album = Album.create(tmp_path / "half", half)
    assert kinfolk.metrics.pairwise(Kinfolk().fit_predict(half), album.labels).f == 1


def test_results_do_not_depend_on_threads(rows, tmp_path):
    X, X_new = rows
    one, three = (Album.create(tmp_path / str(jobs), X, random_state=3, n_jobs=jobs) for jobs in (1, 3))
    for album in (one, three):
        album.add(X_new[:200])
        album.refresh()
        album.add(X_new[200:])
    assert (one.labels == three.labels).all() and one.questions() == three.questions()
    for a, b in zip(one.assign(X_new, top=3), three.assign(X_new, top=3)):
        assert (a == b).all()


def test_assignments_have_the_shapes_of_rows_and_people(rows, album):
    _, X_new = rows
    people, probabilities, new = album.assign(X_new[:30], top=3)
    assert people.shape == probabilities.shape == (30, 3) and new.shape == (30,)
    assert people.dtype == np.int64 and probabilities.dtype == new.dtype == np.float32
    assert ((people == -1) <= (probabilities == 0)).all()
    assert (probabilities.sum(axis=1) + new < 1 + 1e-5).all()
    assert (album.assign(X_new[:30]).people[:, 0] == people[:, 0]).all()


def test_what_is_wrong_is_named(rows, album, tmp_path):
    X, X_new = rows
    before = album.history()
    first, second = album.people()[:2]
    refused = [
        (ValueError, "expected an album .kinfolk album create makes one., found no such directory", lambda: Album(tmp_path / "none")),
        (ValueError, "expected a directory that does not exist or is empty, found an album", lambda: Album.create(album.path, X)),
        (KeyError, "expected the key of an item of the album, found nobody", lambda: album.same("k0", "nobody")),
        (KeyError, "expected the key of an item of the album, found k9999", lambda: album.remove(["k9999"])),
        (KeyError, "expected the id or the name of a person, found Grace", lambda: album.person("Grace")),
        (KeyError, "expected person 99999, found nobody of this id", lambda: album.name(99999, "Grace")),
        (ValueError, "keys: row 0: expected a key that no other item has, found k0", lambda: album.add(X_new[:1], keys=["k0"])),
        (ValueError, "keys: row 1: expected a key that no other item has, found a", lambda: album.add(X_new[:2], keys=["a", "a"])),
        (ValueError, "keys: row 1: expected a key, found nothing", lambda: album.add(X_new[:2], keys=["a", ""])),
        (ValueError, "keys: expected 2 keys .one per row., found 1", lambda: album.add(X_new[:2], keys=["a"])),
        (ValueError, "keys: row 0: expected a string or an integer, found 1.5", lambda: album.add(X_new[:1], keys=[1.5])),
        (ValueError, "keys: expected one for each row, such as a list, found 'k1'", lambda: album.remove("k1")),
        (ValueError, "groups: expected 2 groups .one per row., found 1", lambda: album.add(X_new[:2], groups=["a"])),
        (ValueError, "X: expected 32 columns, as the album has, found 31", lambda: album.add(X_new[:, 1:])),
        (ValueError, "X: expected 32 columns, as the album has, found 31", lambda: album.assign(X_new[:, 1:])),
        (ValueError, "X: row 1: expected a row of non-zero length", lambda: album.add(X_new[:3] * [[1], [0], [1]])),
        (ValueError, "X: row 0, column 0: expected a finite number", lambda: album.add(X_new[:3] * np.nan)),
        (ValueError, "name: expected a name that is not empty and no number", lambda: album.name(first.id, "12")),
        (ValueError, "name: expected a string, found None", lambda: album.name(first.id, None)),
        (ValueError, "model: expected a string or None, found 3", lambda: album.add(X_new, model=3)),
        (ValueError, "n: expected at least 1, found 0", lambda: album.questions(0)),
        (ValueError, "top: expected at least 1, found -1", lambda: album.assign(X_new, top=-1)),
        (ValueError, "expected two people", lambda: album.merge(first.id, first.id)),
        (ValueError, "expected a change that can be undone", lambda: album.undo()),
    ]
    for kind, words, call in refused:
        with pytest.raises(kind, match=words):
            call()
    assert album.history() == before
    # Rows that share an offset are of another space than rows that do not.
    offset = np.eye(32)[0]
    labelled = Album.create(tmp_path / "labelled", X + offset, model="arcface")
    with pytest.raises(ValueError, match="X: expected embeddings of the model arcface, as the album has, found those of other"):
        labelled.add(X_new + offset, model="other")
    with pytest.raises(ValueError, match="X: expected embeddings of the space of .*labelled"):
        labelled.add(X_new, model="arcface")
    labelled.add(X_new + offset, model="arcface")
    a, b = album.person(first.id).items[0], album.person(second.id).items[0]
    album.same(a, b)
    with pytest.raises(ValueError, match=f"{a} = {b}|{b} = {a}"):
        album.apart(a, b)


def test_albums_are_pickled_by_their_path(album):
    again = pickle.loads(pickle.dumps(album))
    assert again.path == album.path and (again.labels == album.labels).all()
    album.name(album.people()[0].id, "Ada")
    assert again.person("Ada").name == "Ada"


def test_a_damaged_album_says_so(album):
    assert album.verify().damages == []
    with open(os.path.join(album.path, "rows.f32"), "r+b") as file:
        file.seek(100)
        file.write(b"damage")
    damages = album.verify().damages
    assert damages and damages[0].file == "rows.f32"


def test_a_second_writer_is_refused_and_readers_go_on(rows, album):
    X, X_new = rows
    refused, read, people = [], [], album.people()
    adding = threading.Thread(target=lambda: album.refresh())
    adding.start()
    while adding.is_alive():
        try:
            album.name(people[0].id, "Ada")
        except RuntimeError as error:
            refused.append(str(error))
        read.append(len(album))
    adding.join()
    # The machine may be so busy that nothing happened at the same time.
    assert read and set(read) == {len(X)}
    assert all("expected no other process that changes the album, found process" in error for error in refused)


HOLDS = """
import sys
from kinfolk import Album
album = Album(sys.argv[1])
print("ready", flush=True)
while True:
    try:
        album.refresh()
    except RuntimeError:
        pass  # The test holds the lock for a moment.
"""


def test_another_process_is_refused(rows, album):
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, album.path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline().strip() == b"ready"
        deadline = time.perf_counter() + 60
        while True:
            try:
                album.name(album.people()[0].id, "Ada")
            except RuntimeError as error:
                # It says which one as soon as it has written its number.
                if f"found process {holder.pid} that is changing it" in str(error):
                    break
            assert time.perf_counter() < deadline
            time.sleep(0.01)
    finally:
        holder.kill()
        holder.wait()
    # What a killed process began is undone, and its lock is free.
    album.name(album.people()[0].id, "Grace")
    assert album.verify().damages == []


def test_progress_is_shown(rows, tmp_path, monkeypatch):
    import tqdm.auto

    stages = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, *words, desc=None, **how):
            stages.append(desc)
            super().__init__(*words, desc=desc, **how)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    album = Album.create(tmp_path / "album", rows[0], verbose=True)
    album.add(rows[1])
    assert stages
