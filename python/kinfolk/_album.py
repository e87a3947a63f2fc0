"""Albums: clusters that are kept on disk, added to and corrected."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np

from . import _kinfolk
from ._arrays import matrix
from ._work import Job, count, seed


class Person(NamedTuple):
    """A person of an album."""

    id: int
    """The id, which is never used for anybody else."""
    name: str | None
    """The name, if somebody gave one."""
    size: int
    """The number of items."""


class PersonItems(NamedTuple):
    """A person of an album, with its items."""

    id: int
    """The id, which is never used for anybody else."""
    name: str | None
    """The name, if somebody gave one."""
    size: int
    """The number of items."""
    items: list[str]
    """The keys of the items, in the order in which they were added."""


class Event(NamedTuple):
    """Something that happened to a person in a change."""

    kind: str
    """``"created"``, ``"grew"``, ``"merged"``, ``"split"``, ``"removed"`` or ``"renamed"``."""
    person: int
    """The person that has the items now, or had them if they were removed."""
    items: list[str]
    """The keys of the items."""
    other: int | None = None
    """The person that had the items before: it was merged, or it still exists and these were split from it."""
    before: str | None = None
    """The name before, if the name changed."""
    after: str | None = None
    """The name after."""


class Change(NamedTuple):
    """What a change did."""

    change: int
    """The number of the change."""
    items: int
    """Items in the album now."""
    people: int
    """People in it."""
    events: list[Event]
    """What happened to people."""


class Entry(NamedTuple):
    """A change in the history of an album."""

    change: int
    """The number of the change."""
    time: str
    """When it was made, UTC."""
    operation: str
    """What it was: ``"create"``, ``"add"``, ..."""
    arguments: dict[str, Any]
    """Its arguments."""
    events: list[Event]
    """What happened to people."""
    undone_by: int | None = None
    """The change that took it back."""


class Question(NamedTuple):
    """A question about two items: are they one person?"""

    items: list[str]
    """The keys of the two items."""
    people: list[int]
    """Their people; one if they are together now."""
    sizes: list[int]
    """How many items are on either side."""
    probability: float
    """The probability that they are one person."""
    gain: float
    """What the answer is expected to add to BCubed F."""
    text: str
    """The question and its evidence."""


class Assignments(NamedTuple):
    """Who rows would be."""

    people: np.ndarray
    """The ids of the likeliest people of each row, the most probable first (int64, rows x top); -1 where there are fewer."""
    probabilities: np.ndarray
    """Their probabilities (float32, rows x top); 0 where there are fewer."""
    new: np.ndarray
    """The probability of somebody new (float32, one for each row)."""


class Damage(NamedTuple):
    """Something that is wrong in an album."""

    file: str
    """The file."""
    what: str
    """What was expected and what was found."""


class Verification(NamedTuple):
    """What a look at everything found."""

    items: int
    """Items that were looked at."""
    damages: list[Damage]
    """What is wrong; nothing in a sound album."""


class Exported(NamedTuple):
    """What was written."""

    rows: int
    """The number of rows."""
    clusters: int
    """The number of clusters."""


class Album:
    """Clusters that are kept in a directory: people whose ids last, rows that are added, corrections that hold, and an undo for
    every change. The command ``kinfolk album`` works on the same directories.

    ``Album(path)`` opens an album, :meth:`Album.create` makes one.

    Parameters
    ----------
    path : path
        The directory of an album.
    n_jobs : int, optional
        Number of threads of each call; ``None`` and -1 mean all cores. Results do not depend on it.
    verbose : bool
        Show progress, if ``tqdm`` is installed.

    Attributes
    ----------
    path : str
        The directory.
    keys : list of str
        The key of every item, in the order in which they were added.
    labels : int64 array
        The id of the person of every item, in the same order.

    Notes
    -----
    Keys are strings; integers are turned into strings. A person is an id (int) or a name (str). Every method that changes the album
    returns a :class:`Change`, with what happened to which people. A change is made as a whole or not at all, whatever happens to the
    process, and Ctrl-C leaves the album as it was.

    An object holds nothing but the path, and every call sees the album as it is at that time. Any number of processes can read it,
    also during a change. One can change it at a time: for a second one there is a ``RuntimeError`` at once. An unknown key or person
    is a ``KeyError``, what contradicts a correction a ``ValueError``.

    Examples
    --------
    >>> import tempfile
    >>> from kinfolk import Album, synth
    >>> (X, y), (X_new, y_new) = synth(identities=40, dim=64, split=0.9)
    >>> directory = tempfile.TemporaryDirectory()
    >>> album = Album.create(directory.name + "/faces", X)
    >>> first = album.people()[0]
    >>> change = album.name(first.id, "Ada")
    >>> change = album.add(X_new, keys=[f"new{row}" for row in range(len(X_new))])
    >>> len(album) == len(X) + len(X_new) == change.items
    True
    >>> album.person("Ada").id == first.id
    True
    >>> album.undo().items == len(X)
    True
    >>> directory.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], n_jobs: int | None = None, verbose: bool = False):
        self.path = os.fspath(path)
        self.n_jobs = n_jobs
        self.verbose = verbose
        self._stored = _kinfolk.Album.open(self.path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        X: Any,
        keys: Any = None,
        groups: Any = None,
        model: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> Album:
        """Clusters the rows of ``X`` as :class:`Kinfolk` does and keeps them as an album.

        Parameters
        ----------
        path : path
            A directory that does not exist or is empty.
        X : matrix
            The embeddings. Rows of zeros are refused.
        keys : sequence of str or int, optional
            Your own key of each row; the number of the row otherwise.
        groups : sequence of str, int or None, optional
            The group of each row, such as its photograph, or ``None``. Items of one group are rarely one person.
        model : str, optional
            The name of the model that made the embeddings. Those of another model will be refused.
        random_state : int or NumPy generator, optional
            The seed of this and all later changes; ``None`` is 0.
        n_jobs, verbose
            As for ``Album(path)``.
        """
        path = os.fspath(path)
        said = _said(keys, groups, model)
        with Job(n_jobs, verbose) as job:
            _kinfolk.Album.create(path, matrix(X), said, seed(random_state), job)
        return cls(path, n_jobs, verbose)

    def add(self, X: Any, keys: Any = None, groups: Any = None, model: str | None = None) -> Change:
        """Adds rows: they join people, or become new ones. ``keys``, ``groups`` and ``model`` are as in :meth:`create`.

        Only people to whom an edge of a new row leads may change, unless the album has doubled since it was clustered as a whole:
        then it is clustered anew, as by :meth:`refresh`.
        """
        said = _said(keys, groups, model)
        with self._job() as job:
            return _change(self._stored.add(matrix(X), said, job))

    def remove(self, keys: Any) -> Change:
        """Removes items. Corrections about them are kept, and hold again if they are added again."""
        with self._job() as job:
            return _change(self._stored.remove(_texts(keys, "keys"), job))

    def same(self, a: str | int, b: str | int) -> Change:
        """Says that two items are one person. It holds from now on.

        Their people become one, unless one of the items is more likely a stray of its person: then it joins the other person with
        what clings to it.
        """
        with self._job() as job:
            return _change(self._stored.same(_text(a, "a"), _text(b, "b"), job))

    def apart(self, a: str | int, b: str | int) -> Change:
        """Says that two items are not one person. A person with both is divided at once. It holds from now on."""
        with self._job() as job:
            return _change(self._stored.apart(_text(a, "a"), _text(b, "b"), job))

    def name(self, person: int | str, name: str) -> Change:
        """Gives a person a name."""
        if not isinstance(name, str):
            raise ValueError(f"name: expected a string, found {name!r}")
        with self._job() as job:
            return _change(self._stored.name(_text(person, "person"), name, job))

    def merge(self, a: int | str, b: int | str) -> Change:
        """Makes two people one, with the name of the first or else of the second."""
        with self._job() as job:
            return _change(self._stored.merge(_text(a, "a"), _text(b, "b"), job))

    def people(self) -> list[Person]:
        """All people, the largest first, ties by id. ``pandas.DataFrame(album.people())`` is a table of them."""
        return [Person(**person) for person in json.loads(self._stored.people())]

    def person(self, person: int | str) -> PersonItems:
        """A person, with the keys of its items."""
        found, items = json.loads(self._stored.person(_text(person, "person")))
        return PersonItems(**found, items=items)

    def questions(self, n: int = 10) -> list[Question]:
        """The ``n`` questions whose answers are worth most, the best first. :meth:`same` and :meth:`apart` answer them."""
        n = count(n, "n")
        with self._job() as job:
            return [Question(**question) for question in json.loads(self._stored.questions(n, job))]

    def assign(self, X: Any, top: int = 1) -> Assignments:
        """Who rows would be; nothing is changed. The rows are looked at together, as if they were added.

        Returns
        -------
        Assignments
            ``people`` (int64, rows x top, -1 where there are fewer), their ``probabilities`` (float32, rows x top), and the probability
            of somebody ``new`` (float32).
        """
        top = count(top, "top")
        with self._job() as job:
            return Assignments(*self._stored.assign(matrix(X), top, job))

    def refresh(self) -> Change:
        """Clusters everything anew. Corrections hold, and people keep their ids."""
        with self._job() as job:
            return _change(self._stored.refresh(job))

    def history(self) -> list[Entry]:
        """All changes, the last first."""
        return [
            Entry(**{**entry, "events": _events(entry["events"])}) for entry in json.loads(self._stored.history())
        ]

    def undo(self) -> Change:
        """Takes the last change back that has not been taken back. Changes up to the last but one clustering of the whole cannot
        be."""
        with self._job() as job:
            return _change(self._stored.undo(job))

    def export(self, directory: str | os.PathLike[str]) -> Exported:
        """Writes what ``kinfolk cluster`` writes, rows in the order of :attr:`keys`: ``labels.npy``, ``clusters.csv``, ``review.csv``
        and ``run.json``."""
        with self._job() as job:
            return Exported(*self._stored.export(os.fspath(directory), job))

    def verify(self) -> Verification:
        """Checks all files and says what is damaged."""
        with self._job() as job:
            found = json.loads(self._stored.verify(job))
        return Verification(found["items"], [Damage(**damage) for damage in found["damages"]])

    @property
    def keys(self) -> list[str]:
        return self._stored.items()[0]

    @property
    def labels(self) -> np.ndarray:
        return self._stored.items()[1]

    def __len__(self) -> int:
        """The number of items."""
        return sum(person.size for person in self.people())

    def __repr__(self) -> str:
        people = self.people()
        return f"Album({self.path!r}): {sum(person.size for person in people)} items, {len(people)} people"

    def __reduce__(self) -> Any:
        return Album, (self.path, self.n_jobs, self.verbose)

    def _job(self) -> Job:
        return Job(self.n_jobs, self.verbose)


def _change(text: str) -> Change:
    found = json.loads(text)
    return Change(**{**found, "events": _events(found["events"])})


def _events(found: list[dict[str, Any]]) -> list[Event]:
    return [Event(**event) for event in found]


def _said(keys: Any, groups: Any, model: str | None) -> dict[str, Any]:
    """What is said of rows, as the extension module reads it."""
    if model is not None and not isinstance(model, str):
        raise ValueError(f"model: expected a string or None, found {model!r}")
    return {
        "keys": None if keys is None else _texts(keys, "keys"),
        "groups": None if groups is None else [_group(group, row) for row, group in enumerate(_list(groups, "groups"))],
        "model": model,
    }


def _list(values: Any, name: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name}: expected one for each row, such as a list, found {values!r}")
    return list(values)


def _texts(values: Any, name: str) -> list[str]:
    return [_text(value, f"{name}: row {row}") for row, value in enumerate(_list(values, name))]


def _text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    raise ValueError(f"{place}: expected a string or an integer, found {value!r}")


def _group(value: Any, row: int) -> str | None:
    """A group; in a data frame NaN means that there is none."""
    if value is None or value == "" or value != value:
        return None
    return _text(value, f"groups: row {row}")
