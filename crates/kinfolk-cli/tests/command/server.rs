//! A server of PostgreSQL for a test: in a temporary directory, on a free port of this machine, with passwords, and stopped when the
//! test ends, whatever happens.
//!
//! Its programs are those of `$KINFOLK_POSTGRES`, a directory, or Debian's. Without them, tests that need a server are skipped.

use postgres::{Client, NoTls};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The password of the user `ada`; nothing that the command writes may have it.
pub const PASSWORD: &str = "tr0ub4dor-and-3";

pub struct Server {
    directory: TempDir,
    programs: PathBuf,
    postmaster: Child,
    pub port: u16,
    /// Whether it has the types of pgvector.
    pub has_vectors: bool,
}

impl Server {
    /// A server with the database `photos` of `ada`; none, with the reason printed, where there is no program for it.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!(
                "skipped: no PostgreSQL that {} can run in $KINFOLK_POSTGRES or /usr/lib/postgresql",
                user()
            );
            return None;
        };
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("password"), PASSWORD).unwrap();
        if is_root() {
            let owner = Command::new("chown").args(["-R", user()]).arg(directory.path()).status();
            assert!(owner.unwrap().success());
        }
        let mut initdb = command(&programs, "initdb");
        initdb.arg("-D").arg(directory.path().join("data"));
        initdb.arg("--pwfile").arg(directory.path().join("password"));
        initdb.args(["-U", "ada", "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync"]);
        succeeded(&initdb.output().unwrap());
        let (postmaster, port) = launch(&programs, directory.path());
        let mut server = Self { directory, programs, postmaster, port, has_vectors: false };
        server.client("postgres").batch_execute("CREATE DATABASE photos").unwrap();
        server.has_vectors = server.client("photos").batch_execute("CREATE EXTENSION vector").is_ok();
        Some(server)
    }

    /// A connection of the test's own.
    pub fn client(&self, database: &str) -> Client {
        let mut config = Client::configure();
        config.host("127.0.0.1").port(self.port).user("ada").password(PASSWORD).dbname(database);
        config.connect(NoTls).unwrap()
    }

    /// The URL of the database, with the password.
    pub fn url(&self) -> String {
        format!("postgres://ada:{PASSWORD}@127.0.0.1:{}/photos", self.port)
    }

    /// What the command may show of it.
    pub fn shown(&self) -> String {
        format!("postgres://ada@127.0.0.1:{}/photos", self.port)
    }

    /// Kills all processes of the server, as a failure of power does.
    pub fn kill(&mut self) {
        // First it stops, so that it starts no processes while its own are killed.
        let pid = self.postmaster.id().to_string();
        signal("STOP", &pid);
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().for_each(|child| signal("KILL", child));
        self.postmaster.kill().unwrap();
        self.postmaster.wait().unwrap();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        (self.postmaster, self.port) = launch(&self.programs, self.directory.path());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, without waiting for clients.
        signal("QUIT", &self.postmaster.id().to_string());
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if self.postmaster.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.postmaster.kill();
        let _ = self.postmaster.wait();
    }
}

fn signal(name: &str, process: &str) {
    // The shell's own command, because there may be no program of this name.
    let kill = format!("kill -s {name} {process}");
    let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
}

/// The directory of the programs: the one that is given, or of those that are installed the newest with pgvector or else the newest.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<(bool, u32, PathBuf)> = installed
        .filter_map(|entry| {
            let version = entry.file_name().into_string().ok()?;
            let extension = format!("/usr/share/postgresql/{version}/extension/vector.control");
            Some((Path::new(&extension).exists(), version.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    installed.sort();
    let given = std::env::var_os("KINFOLK_POSTGRES").map(PathBuf::from);
    let mut all = given.into_iter().chain(installed.into_iter().rev().map(|(.., programs)| programs));
    all.find(|programs| {
        ["initdb", "postgres"].iter().all(|program| {
            let run = command(programs, program).arg("--version").output();
            run.is_ok_and(|output| output.status.success())
        })
    })
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Who the server runs as where the tests run as root, which it refuses.
fn user() -> &'static str {
    if !is_root() {
        return "this user";
    }
    let known = Command::new("id").args(["-u", "postgres"]).output();
    if known.is_ok_and(|output| output.status.success()) { "postgres" } else { "nobody" }
}

/// A program of the server, which ends with the test.
fn command(programs: &Path, name: &str) -> Command {
    if !is_root() {
        return Command::new(programs.join(name));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user(), "--clear-groups", "--pdeathsig", "QUIT"]).arg(programs.join(name));
    command.current_dir("/");
    command
}

/// Starts the server and waits until it answers.
fn launch(programs: &Path, directory: &Path) -> (Child, u16) {
    // Another process may take a free port before the server does.
    for _ in 0..10 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::options().create(true).append(true).open(directory.join("log")).unwrap();
        let mut postgres = command(programs, "postgres");
        postgres.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
        postgres.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F"]);
        postgres.stdout(log.try_clone().unwrap()).stderr(log);
        let mut postmaster = postgres.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while postmaster.try_wait().unwrap().is_none() {
            let mut config = Client::configure();
            config.host("127.0.0.1").port(port).user("ada").password(PASSWORD).dbname("postgres");
            if config.connect(NoTls).is_ok() {
                return (postmaster, port);
            }
            assert!(Instant::now() < deadline, "{}", log_of(directory));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    panic!("no server: {}", log_of(directory));
}

fn log_of(directory: &Path) -> String {
    fs::read_to_string(directory.join("log")).unwrap_or_default()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
