//! Albums: `kinfolk_album::Album`. Every call opens the album, so that one object serves all threads and processes. What is neither
//! rows nor labels comes back as the JSON that the command prints.

use crate::arrays::Matrix;
use crate::cluster::arrays;
use crate::errors::raise;
use crate::predict::{Candidates, table};
use crate::work::Job;
use kinfolk::{Assignment, Progress};
use kinfolk_album::{AddOptions, Album, Summary};
use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::path::PathBuf;

/// What is said of rows.
#[derive(FromPyObject)]
pub struct Said {
    #[pyo3(item)]
    keys: Option<Vec<String>>,
    #[pyo3(item)]
    groups: Option<Vec<Option<String>>>,
    #[pyo3(item)]
    model: Option<String>,
}

impl From<Said> for AddOptions {
    fn from(Said { keys, groups, model }: Said) -> Self {
        AddOptions { keys, groups, model }
    }
}

/// The directory of an album.
#[pyclass(frozen, name = "Album", module = "kinfolk._kinfolk")]
pub struct StoredAlbum(PathBuf);

#[pymethods]
impl StoredAlbum {
    #[staticmethod]
    fn create(
        py: Python<'_>,
        directory: PathBuf,
        x: Matrix,
        said: Said,
        seed: u64,
        job: Job,
    ) -> PyResult<Self> {
        let options = said.into();
        job.run(py, |progress| {
            Album::create(&directory, &x.embeddings()?, &options, seed, progress).map(drop)
        })?;
        Ok(Self(directory))
    }

    #[staticmethod]
    fn open(directory: PathBuf) -> PyResult<Self> {
        Album::open(&directory).map_err(raise)?;
        Ok(Self(directory))
    }

    fn add(&self, py: Python<'_>, x: Matrix, said: Said, job: Job) -> PyResult<String> {
        let options = said.into();
        self.change(py, job, |album, progress| album.add(&x.embeddings()?, &options, progress))
    }

    fn remove(&self, py: Python<'_>, keys: Vec<String>, job: Job) -> PyResult<String> {
        self.change(py, job, |album, progress| album.remove(&keys, progress))
    }

    fn same(&self, py: Python<'_>, a: String, b: String, job: Job) -> PyResult<String> {
        self.change(py, job, |album, progress| album.same(&a, &b, progress))
    }

    fn apart(&self, py: Python<'_>, a: String, b: String, job: Job) -> PyResult<String> {
        self.change(py, job, |album, progress| album.apart(&a, &b, progress))
    }

    fn name(&self, py: Python<'_>, person: String, name: String, job: Job) -> PyResult<String> {
        self.change(py, job, |album, _| album.name(&person, &name))
    }

    fn merge(&self, py: Python<'_>, one: String, other: String, job: Job) -> PyResult<String> {
        self.change(py, job, |album, progress| album.merge(&one, &other, progress))
    }

    fn refresh(&self, py: Python<'_>, job: Job) -> PyResult<String> {
        self.change(py, job, |album, progress| album.refresh(progress))
    }

    fn undo(&self, py: Python<'_>, job: Job) -> PyResult<String> {
        self.change(py, job, |album, _| album.undo())
    }

    fn people(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.read(py, Album::people)?)
    }

    /// The person, and the keys of its items.
    fn person(&self, py: Python<'_>, person: &str) -> PyResult<String> {
        json(&self.read(py, |album| Ok((album.find(person)?, album.person(person)?)))?)
    }

    /// The key and the person of every item, in the order in which they were added.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<(Vec<String>, Bound<'py, PyArray1<i64>>)> {
        let (keys, people) = self.read(py, Album::items)?.into_iter().unzip();
        Ok((keys, PyArray1::from_vec(py, people)))
    }

    fn questions(&self, py: Python<'_>, count: usize, job: Job) -> PyResult<String> {
        json(&job.run(py, |_| Album::open(&self.0)?.questions(count))?)
    }

    fn assign<'py>(&self, py: Python<'py>, x: Matrix, top: usize, job: Job) -> PyResult<Candidates<'py>> {
        let found = job.run(py, |progress| Album::open(&self.0)?.assign(&x.embeddings()?, top, progress))?;
        let candidates = |assignment: kinfolk_album::Assignment| Assignment {
            candidates: assignment.people.iter().map(|person| (person.person, person.probability)).collect(),
            none: assignment.new,
        };
        table(py, &found.into_iter().map(candidates).collect::<Vec<_>>(), top)
    }

    fn history(&self, py: Python<'_>) -> PyResult<String> {
        json(&self.read(py, Album::history)?)
    }

    fn export(&self, py: Python<'_>, directory: PathBuf, job: Job) -> PyResult<(usize, usize)> {
        job.run(py, |progress| Album::open(&self.0)?.export(&directory, progress))
    }

    fn verify(&self, py: Python<'_>, job: Job) -> PyResult<String> {
        json(&job.run(py, |_| Album::open(&self.0)?.verify())?)
    }

    /// The people as the result of clustering.
    fn clustering<'py>(&self, py: Python<'py>, job: Job) -> PyResult<Bound<'py, PyDict>> {
        let found = job.run(py, |progress| Album::open(&self.0)?.clustering(progress))?;
        arrays(py, &found, false)
    }
}

impl StoredAlbum {
    /// Makes a change and says what it did.
    fn change(
        &self,
        py: Python<'_>,
        job: Job,
        work: impl FnOnce(&mut Album, &dyn Progress) -> kinfolk::Result<Summary> + Send,
    ) -> PyResult<String> {
        json(&job.run(py, |progress| work(&mut Album::open(&self.0)?, progress))?)
    }

    /// Reads something that is quick.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Album) -> kinfolk::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&Album::open(&self.0)?)).map_err(raise)
    }
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
