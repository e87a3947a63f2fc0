//! Tables of PostgreSQL: rows from one ([`Database::read`]), people into one (`Album::export_to`).
//!
//! The connection is not encrypted, so the crate needs no TLS library; a URL that demands encryption is refused. What is shown of
//! a URL is host, port, user and database, never the password.
//!
//! A thread looks whether the work was cancelled, because who waits for a server cannot: it then tells the server, which ends
//! the query. A failure tells it, too, and the transaction ends with the connection.

mod read;
mod table;
mod values;
mod write;

use kinfolk::{Error, Progress, Result};
use postgres::config::{Config, Host, SslMode};
use postgres::error::{Severity, SqlState};
use postgres::{Client, NoTls};
use std::error::Error as _;
use std::fmt;
use std::net::IpAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often cancellation is looked for.
const INTERVAL: Duration = Duration::from_millis(100);
/// A server that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database of PostgreSQL. Displayed, it is its URL without the password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    place: String,
}

impl Database {
    /// The database of a URL, `postgres://user@host:5432/name`. `password` is used if the URL has none.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self> {
        // What is refused may have the password anywhere, so it is not shown.
        let refuse = |expected, found: String| Err(Error::Parameter { field: "url", expected, found });
        let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return refuse(
                "postgres://USER@HOST:5432/DATABASE",
                "something that does not begin with postgres://".into(),
            );
        };
        if rest.matches('@').count() > 1 {
            return refuse(
                "one @, before the host; %40 in names and passwords",
                "more than one, not shown here".into(),
            );
        }
        const PLAIN: &str = "sslmode=disable or sslmode=prefer, because kinfolk does not encrypt the connection; a tunnel (ssh -L) \
                             does, and a Unix socket (?host=/var/run/postgresql) needs no encryption";
        let options = rest.split_once('?').map_or("", |(_, options)| options).split('&');
        if let Some(mode) = options.clone().find_map(|option| option.strip_prefix("sslmode=verify-")) {
            return refuse(PLAIN, format!("sslmode=verify-{mode}"));
        }
        let mut config: Config = match url.parse() {
            Ok(config) => config,
            Err(error) => return refuse("postgres://USER@HOST:5432/DATABASE", cause(&error)),
        };
        if config.get_ssl_mode() == SslMode::Require {
            return refuse(PLAIN, "sslmode=require".into());
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return refuse(
                "a host, as in postgres://USER@HOST/DATABASE, or the directory of a Unix socket, as in \
                 postgres:///DATABASE?host=/var/run/postgresql",
                "neither".into(),
            );
        }
        config.ssl_mode(SslMode::Disable);
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("kinfolk");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if !options.clone().any(|option| option.starts_with("keepalives")) {
            // A server that vanished without a word is noticed after a minute, and not after the two hours of the system.
            config.keepalives_idle(PATIENCE).keepalives_interval(PATIENCE / 3).keepalives_retries(3);
        }
        let place = shown(&config);
        Ok(Self { config, place })
    }

    /// Works in a connection of its own.
    fn work<T>(&self, progress: &dyn Progress, work: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
        if !is_local(&self.config) {
            progress.warn(&format!("{}: the connection is not encrypted", self.place));
        }
        let mut client = self.config.connect(NoTls).map_err(|error| self.not_connected(&error))?;
        let token = client.cancel_token();
        let (end, ended) = channel::<()>();
        let result = std::thread::scope(|scope| {
            let watched = token.clone();
            scope.spawn(move || {
                while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if progress.cancelled() {
                        // If the server cannot be told now, it is told again.
                        let _ = watched.cancel_query(NoTls);
                    }
                }
            });
            let result = work(&mut client);
            drop(end);
            result
        });
        if result.is_err() {
            // Otherwise closing the connection waits for all rows that the server has to send. If it cannot be told, it is gone.
            let _ = token.cancel_query(NoTls);
            progress.check()?;
        }
        result
    }

    fn not_connected(&self, error: &postgres::Error) -> Error {
        let code = error.code();
        let refused = [&SqlState::INVALID_PASSWORD, &SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
        let (expected, found) = if code.is_some_and(|code| refused.contains(&code)) {
            ("a user and a password that the server accepts", cause(error))
        } else if code.is_none() && self.config.get_password().is_none() && cause(error).contains("password")
        {
            ("a password, in the URL or in the environment as PGPASSWORD", "none".to_owned())
        } else {
            ("a server that can be connected to", cause(error))
        };
        Error::format(&self.place, expected, found)
    }

    /// What was expected of the server, and what it said instead.
    fn failed(&self, expected: impl Into<String>, error: &postgres::Error) -> Error {
        let found = match error.as_db_error().map(|said| said.parsed_severity()) {
            Some(Some(Severity::Error)) => cause(error),
            _ => format!("a lost connection ({})", cause(error)),
        };
        Error::format(&self.place, expected, found)
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.place)
    }
}

fn is_scheme(scheme: &str) -> bool {
    ["postgres", "postgresql"].contains(&scheme)
}

/// What an error says, with what the server says about it.
fn cause(error: &postgres::Error) -> String {
    let Some(said) = error.as_db_error() else {
        return error.source().map_or_else(|| error.to_string(), |source| source.to_string());
    };
    let more = [said.detail(), said.hint()];
    let more = more.into_iter().flatten().map(|text| format!(" ({})", text.trim_end_matches('.')));
    format!("{}{}", said.message(), more.collect::<String>())
}

/// A URL without its password.
fn shown(config: &Config) -> String {
    let user = config.get_user().map_or(String::new(), |user| format!("{user}@"));
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let mut hosts: Vec<String> = Vec::new();
    let mut sockets = String::new();
    for (at, host) in config.get_hosts().iter().enumerate() {
        match host {
            Host::Tcp(host) if host.contains(':') => hosts.push(format!("[{host}]:{}", port(at))),
            Host::Tcp(host) => hosts.push(format!("{host}:{}", port(at))),
            #[cfg(unix)]
            Host::Unix(host) => {
                sockets = format!("?host={}&port={}", host.display(), port(at));
            }
        }
    }
    if config.get_hosts().is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        hosts.extend(addresses.map(|(at, address)| format!("{address}:{}", port(at))));
    }
    format!("postgres://{user}{}/{name}{sockets}", hosts.join(","))
}

/// Whether what is sent stays on this machine.
fn is_local(config: &Config) -> bool {
    let host = |host: &Host| match host {
        Host::Tcp(host) => {
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(host) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Database::new(url, None).map_or_else(|error| error.to_string(), |database| database.to_string())
    }

    #[test]
    fn what_is_shown_of_a_url_has_no_password() {
        let urls = [
            ("postgres://ada:secret@db.example.org/photos", "postgres://ada@db.example.org:5432/photos"),
            (
                "postgresql://ada@[::1]:5433/photos?password=secret&sslmode=disable",
                "postgres://ada@[::1]:5433/photos",
            ),
            ("postgres://ada:se%40cret@a:1,b:2/", "postgres://ada@a:1,b:2/ada"),
            ("postgres://localhost", "postgres://localhost:5432/"),
            #[cfg(unix)]
            (
                "postgres://ada:secret@/photos?host=/run/postgresql",
                "postgres://ada@/photos?host=/run/postgresql&port=5432",
            ),
        ];
        for (url, expected) in urls {
            assert_eq!(shown(url), expected);
            let database = Database::new(url, Some("secret")).unwrap();
            assert_eq!(format!("{database:?}"), format!("Database({expected})"));
        }
    }

    #[test]
    fn a_url_that_is_refused_is_not_shown() {
        let urls = [
            ("host=a user=ada password=secret", "does not begin with postgres://"),
            ("mysql://ada:secret@a/photos", "does not begin with postgres://"),
            ("postgres://ada:sec@ret@a/photos", "%40 in names and passwords"),
            ("postgres://ada:secret@a:port/photos", "invalid value for option `port`"),
            ("postgres://ada:secret@a/photos?gssencmode=prefer", "unknown option `gssencmode`"),
            ("postgres://ada:secret@/photos", "found neither"),
            ("postgres://ada:secret@a/photos?sslmode=verify-full", "found sslmode=verify-full"),
            ("postgres://ada:secret@a/photos?sslmode=require", "does not encrypt the connection"),
        ];
        for (url, expected) in urls {
            let message = shown(url);
            assert!(message.starts_with("url: expected ") && message.contains(expected), "{message}");
            assert!(!message.contains("secret") && !message.contains("ret@"), "{message}");
        }
    }
}
