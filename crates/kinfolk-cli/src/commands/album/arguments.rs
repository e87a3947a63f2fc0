//! Arguments that several commands of albums have.

use crate::bars::Bars;
use crate::commands::Features;
use crate::failure::{Failure, Places};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use kinfolk::{Embeddings, Error};
use kinfolk_album::{AddOptions, Album, Database};
use std::path::{Path, PathBuf};

/// The album.
#[derive(Args)]
pub struct Where {
    /// Directory of the album
    #[arg(value_name = "ALBUM", value_parser = directory())]
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

/// A directory to write to, and not the URL of a database: its password would become the name of the directory.
pub fn directory() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_string_lossy().contains("://") {
        true => Err("expected a directory; --from and --to take the URL of a database"),
        false => Ok(path),
    })
}

/// The database of the URL that an option has; its password may be in the environment.
pub fn database(option: &str, url: &str) -> Result<Database, Failure> {
    let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
    match Database::new(url, password.as_deref()) {
        Err(Error::Parameter { expected, found, .. }) => {
            Err(Failure::Usage(format!("{option}: expected {expected}, found {found}")))
        }
        database => Ok(database?),
    }
}

/// Rows, and what is said of them.
#[derive(Args)]
pub struct Rows {
    #[command(flatten)]
    features: Option<Features>,
    /// PostgreSQL database to read instead, postgres://USER@HOST:5432/DATABASE. The password may be in the URL, where other
    /// users of this machine see it, or in the environment as PGPASSWORD. The connection is not encrypted
    #[arg(long, value_name = "URL", requires = "query", conflicts_with_all = ["Features", "keys", "group"])]
    from: Option<String>,
    /// Query of the rows: the first column is the key, the second the embedding (vector, halfvec, real[] or double
    /// precision[]), a third, if any, the group
    #[arg(long, value_name = "SQL", requires = "from", conflicts_with_all = ["Features", "keys", "group"])]
    query: Option<String>,
    /// Text file with your own key of each row, one per line [default: the number of the row]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Text file with the group of each row, such as its photograph, one per line; empty for none. Items of one group are
    /// rarely one person
    #[arg(long, value_name = "FILE")]
    group: Option<PathBuf>,
    /// Name of the model that made the embeddings; those of another model are refused
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
}

/// Rows that were read, and where from.
pub struct Given {
    pub rows: Embeddings,
    pub options: AddOptions,
    place: PathBuf,
    keys: Option<PathBuf>,
    groups: Option<PathBuf>,
}

impl Rows {
    /// Reads them, to be added to an album if one is given.
    pub fn read(self, album: Option<&Album>, bars: &Bars) -> Result<Given, Failure> {
        let model = self.space;
        if let (Some(url), Some(query)) = (&self.from, &self.query) {
            let database = database("--from", url)?;
            let (rows, options) = database.read(query, album, bars)?;
            let (place, options) = (database.to_string().into(), AddOptions { model, ..options });
            return Ok(Given { rows, options, place, keys: None, groups: None });
        }
        let Some(features) = self.features else {
            let message = "expected FEATURES, or --from URL with --query SQL, found neither";
            return Err(Failure::Usage(message.to_owned()));
        };
        let rows = features.read()?;
        let keys = self.keys.as_deref().map(|path| lines(path, rows.len())).transpose()?;
        if let (Some(keys), Some(path)) = (&keys, &self.keys)
            && let Some(row) = keys.iter().position(String::is_empty)
        {
            let place = path.display().to_string();
            return Err(
                Error::Line { place, line: row + 1, expected: "a key", found: "nothing".to_owned() }.into()
            );
        }
        let groups = self.group.as_deref().map(|path| lines(path, rows.len())).transpose()?;
        let groups = groups
            .map(|lines| lines.into_iter().map(|line| Some(line).filter(|line| !line.is_empty())).collect());
        let options = AddOptions { keys, groups, model };
        Ok(Given { rows, options, place: features.features, keys: self.keys, groups: self.group })
    }
}

impl Given {
    /// Names in an error where the rows are from.
    pub fn name(&self, error: Error) -> Failure {
        let file = |place: &str| match place {
            "keys" => self.keys.as_ref().unwrap_or(&self.place).display().to_string(),
            "groups" => self.groups.as_ref().unwrap_or(&self.place).display().to_string(),
            place => place.to_owned(),
        };
        let error = match error {
            Error::Row { place, row, expected, found } => {
                Error::Row { place: file(&place), row, expected, found }
            }
            other => other,
        };
        Failure::from(error).at(&Places { embeddings: Some(&self.place), ..Places::default() })
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
