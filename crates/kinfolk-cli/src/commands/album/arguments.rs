//! Arguments that several commands of albums have.

use crate::failure::{Failure, Places};
use clap::Args;
use kinfolk::{Embeddings, Error};
use kinfolk_album::{AddOptions, Album};
use std::path::{Path, PathBuf};

/// The album.
#[derive(Args)]
pub struct Where {
    /// Directory of the album
    #[arg(value_name = "ALBUM")]
    pub album: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl Where {
    pub fn open(&self) -> Result<Album, Failure> {
        Ok(Album::open(&self.album)?)
    }
}

/// What is said of rows.
#[derive(Args)]
pub struct Rows {
    #[command(flatten)]
    pub features: crate::commands::Features,
    /// Text file with your own key of each row, one per line [default: the number of the row]
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Name of the model that made the embeddings; those of another model are refused
    #[arg(long, value_name = "NAME")]
    pub space: Option<String>,
}

impl Rows {
    /// The rows, and what is said of them.
    pub fn read(&self, groups: Option<&Path>) -> Result<(Embeddings, AddOptions), Failure> {
        let rows = self.features.read()?;
        let keys = self.keys.as_deref().map(|path| lines(path, rows.len())).transpose()?;
        if let (Some(keys), Some(path)) = (&keys, &self.keys)
            && let Some(row) = keys.iter().position(String::is_empty)
        {
            let place = path.display().to_string();
            return Err(
                Error::Line { place, line: row + 1, expected: "a key", found: "nothing".to_owned() }.into()
            );
        }
        let groups = groups.map(|path| lines(path, rows.len())).transpose()?;
        let groups = groups
            .map(|lines| lines.into_iter().map(|line| Some(line).filter(|line| !line.is_empty())).collect());
        Ok((rows, AddOptions { keys, groups, model: self.space.clone() }))
    }

    /// Names the files in an error.
    pub fn name(&self, error: Error, groups: Option<&Path>) -> Failure {
        let file = |place: &str| match place {
            "keys" => self.keys.as_deref(),
            "groups" => groups,
            _ => None,
        };
        let error = match error {
            Error::Row { place, row, expected, found } => {
                let place = file(&place).map_or(place, |path| path.display().to_string());
                Error::Row { place, row, expected, found }
            }
            other => other,
        };
        Failure::from(error).at(&Places { embeddings: Some(&self.features.features), ..Places::default() })
    }
}

/// The lines of a file, one per row.
fn lines(path: &Path, rows: usize) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let lines: Vec<String> = text.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect();
    if lines.len() != rows {
        let (place, what) = (path.display().to_string(), "lines (one per row)".to_owned());
        return Err(Error::Length { place, what, expected: rows, found: lines.len() }.into());
    }
    Ok(lines)
}
