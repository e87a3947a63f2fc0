//! `kinfolk album` beside PostgreSQL: rows from a table, people into one, what is refused, and what a lost connection leaves behind.

use super::server::{PASSWORD, Server};
use super::{Run, files, npy, succeeds};
use kinfolk::Progress;
use kinfolk_album::Database;
use postgres::Client;
use postgres::types::Type;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DIM: usize = 64;

/// Rows of a `.npy` file of float32.
fn rows(path: &Path) -> Vec<Vec<f32>> {
    let bytes = fs::read(path).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let values: Vec<f32> =
        bytes[header..].as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    values.chunks_exact(DIM).map(<[f32]>::to_vec).collect()
}

/// A directory with a set of two parts, and a server with a table of all rows: `first` says of which part they are.
fn prepared() -> Option<(TempDir, Server, usize)> {
    let server = Server::start()?;
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    succeeds(path, &["synth", "set", "--identities", "40", "--dim", "64", "--split", "0.7", "--seed", "3"]);
    let [first, second] = ["train", "test"].map(|name| rows(&path.join(format!("set/{name}_features.npy"))));
    let mut client = server.client("photos");
    client
        .batch_execute(
            "CREATE TABLE faces(id bigint PRIMARY KEY, first boolean, word text, photo integer, embedding real[])",
        )
        .unwrap();
    let mut copy = client.copy_in("COPY faces(id, first, embedding) FROM STDIN").unwrap();
    for (id, row) in first.iter().chain(&second).enumerate() {
        let values: Vec<String> = row.iter().map(f32::to_string).collect();
        let line = format!("{id}\t{}\t{{{}}}\n", id < first.len(), values.join(","));
        std::io::Write::write_all(&mut copy, line.as_bytes()).unwrap();
    }
    copy.finish().unwrap();
    client.batch_execute("UPDATE faces SET word = 'face ' || id, photo = id / 3").unwrap();
    let count = first.len();
    Some((directory, server, count))
}

/// The command, with the password in the environment.
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
    command.arg("album").args(arguments).current_dir(directory).env("PGPASSWORD", PASSWORD);
    command
}

/// What it did; its output must not have the password.
fn checked(output: std::process::Output) -> Run {
    let run = Run { output };
    assert!(!run.stdout().contains(PASSWORD) && !run.stderr().contains(PASSWORD), "{}", run.stderr());
    run
}

fn album(directory: &Path, arguments: &[&str]) -> Run {
    let run = checked(command(directory, arguments).output().unwrap());
    assert_eq!(run.code(), 0, "{arguments:?}: {}", run.stderr());
    run
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    album(directory, &[arguments, &["--json"]].concat()).json()
}

/// The message of a command that must fail, without the beginning that all have.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let run = checked(command(directory, arguments).output().unwrap());
    assert_ne!(run.code(), 0, "{arguments:?}");
    assert_eq!(run.stdout(), "");
    run.stderr().trim().to_owned()
}

/// The keys of every person, without ids.
fn people(directory: &Path, album: &str) -> Vec<Vec<String>> {
    let people = json(directory, &["people", album]);
    let keys = |person: &Value| {
        let person = json(directory, &["person", album, &person["id"].to_string()]);
        let items = person["items"].as_array().unwrap();
        items.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    };
    let mut people: Vec<Vec<String>> = people.as_array().unwrap().iter().map(keys).collect();
    people.sort();
    people
}

#[test]
fn an_album_of_a_table_is_that_of_the_file() {
    let Some((directory, server, first)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    album(path, &["create", "file", "set/train_features.npy"]);
    let of_file = people(path, "file");
    let mut columns = vec!["embedding", "embedding::double precision[]"];
    if server.has_vectors {
        columns.push("embedding::vector(64)");
    }
    let create = |name: &str, key: &str, column: &str| {
        let query = format!("select {key}, {column} as embedding from faces where first order by id;");
        let made = json(path, &["create", name, "--from", &url, "--query", &query]);
        assert_eq!(made["items"], first);
    };
    for (at, column) in columns.iter().enumerate() {
        let name = format!("album{at}");
        create(&name, "id", column);
        assert_eq!(people(path, &name), of_file, "{column}");
        let rows = |album: &str| fs::read(path.join(album).join("rows.f32")).unwrap();
        assert!(rows(&name) == rows("file"), "{column}");
    }
    // Keys of other types.
    create("small", "id::smallint", "embedding");
    assert_eq!(people(path, "small"), of_file);
    create("words", "word", "embedding");
    let words = |person: &Vec<String>| person.iter().map(|key| format!("face {key}")).collect();
    let mut expected: Vec<Vec<String>> = of_file.iter().map(words).collect();
    expected.sort();
    assert_eq!(people(path, "words"), expected);
    create("uuids", "md5(word)::uuid", "embedding");
    let uuid: String = server
        .client("photos")
        .query_one("SELECT md5(word)::uuid::text FROM faces WHERE id = 0", &[])
        .unwrap()
        .get(0);
    assert!(people(path, "uuids").iter().flatten().any(|key| *key == uuid), "{uuid}");
    // halfvec is that of a file of float16.
    let has_halves = server.client("photos").batch_execute("SELECT '[1]'::halfvec").is_ok();
    if !has_halves {
        eprintln!("skipped: this server has no halfvec, or no pgvector at all");
    } else {
        let halves: Vec<u8> = rows(&path.join("set/train_features.npy"))
            .iter()
            .flatten()
            .flat_map(|&value| half::f16::from_f32(value).to_le_bytes())
            .collect();
        fs::write(path.join("half.npy"), npy("<f2", &format!("({first}, {DIM})"), &halves)).unwrap();
        album(path, &["create", "half-file", "half.npy"]);
        create("half", "id", "embedding::vector::halfvec");
        assert_eq!(people(path, "half"), people(path, "half-file"));
    }
}

#[test]
fn rows_are_added_with_groups() {
    let Some((directory, server, first)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    let query = |columns: &str, which: &str| format!("select {columns} from faces where {which} order by id");
    let create = query("id, embedding, photo", "first");
    album(path, &["create", "table", "--from", &url, "--query", &create]);
    let add = query("id, embedding, case when id % 2 = 0 then photo::text end", "not first");
    let added = json(path, &["add", "table", "--from", &url, "--query", &add]);
    let count = rows(&path.join("set/test_features.npy")).len();
    assert_eq!(added["items"], first + count);
    // The same from files, where the groups of both are options.
    let groups: String = (0..first).map(|id| format!("{}\n", id / 3)).collect();
    fs::write(path.join("groups.txt"), groups).unwrap();
    album(path, &["create", "file", "set/train_features.npy", "--group", "groups.txt"]);
    let group = |id: usize| if id.is_multiple_of(2) { (id / 3).to_string() } else { String::new() };
    let groups: String = (first..first + count).map(|id| group(id) + "\n").collect();
    fs::write(path.join("groups.txt"), groups).unwrap();
    album(path, &["add", "file", "set/test_features.npy", "--group", "groups.txt"]);
    assert_eq!(people(path, "table"), people(path, "file"));
    // Keys that are there, dimensions of others, and another model.
    let again = query("id, embedding", "not first");
    assert_eq!(
        refused(path, &["add", "table", "--from", &url, "--query", &again]),
        format!("error: {}: row 0: expected a key that no other item has, found {first}", server.shown())
    );
    let short = query("-id, embedding[1:8]", "id = 7");
    assert_eq!(
        refused(path, &["add", "table", "--from", &url, "--query", &short]),
        format!(
            "error: {} (column embedding): row 0: expected 64 columns, as the album has, found 8 (key -7)",
            server.shown()
        )
    );
}

#[test]
fn what_is_refused_names_the_column_the_row_and_the_key() {
    let Some((directory, server, _)) = prepared() else { return };
    let (path, url, shown) = (directory.path(), server.url(), server.shown());
    let before = files(path);
    let create =
        |url: &str, query: &str| refused(path, &["create", "album", "--from", url, "--query", query]);
    let cases = [
        (
            "selec",
            ": expected a query that the server can run, found syntax error at or near \"selec\", at character 1 of it",
        ),
        (
            "select id, embeding from faces",
            ": expected a query that the server can run, found column \"embeding\" does not exist (Perhaps you meant to reference the column \"faces.embedding\"), at character 12 of it",
        ),
        (
            "select 1; drop table faces",
            ": expected a query that the server can run, found cannot insert multiple commands into a prepared statement",
        ),
        (
            "delete from faces returning id, embedding",
            ": expected a query that the server can run, found cannot execute DELETE in a read-only transaction",
        ),
        (
            "select id, embedding from faces where id = $1",
            ": expected a query without parameters such as $1, found 1 of them",
        ),
        (
            "select id from faces",
            ": expected a query of the columns key and embedding, and group if there are groups, found one column: id",
        ),
        (
            "select id, embedding, photo, word from faces",
            ": expected a query of the columns key and embedding, and group if there are groups, found 4 columns: id, embedding, photo, word",
        ),
        (
            "delete from faces",
            ": expected a query of the columns key and embedding, and group if there are groups, found no columns",
        ),
        (
            "select first, embedding from faces",
            " (column first): expected a key: text, varchar, bigint, integer, smallint or uuid, found boolean",
        ),
        (
            "select id, word from faces",
            " (column word): expected an embedding: vector, halfvec, real[] or double precision[], found text",
        ),
        (
            "select id, '{1}'::int[] as list from faces",
            " (column list): expected an embedding: vector, halfvec, real[] or double precision[], found integer[]",
        ),
        (
            "select id, embedding, 1.5 as photo from faces",
            " (column photo): expected a group: text, varchar, bigint, integer, smallint or uuid, found numeric",
        ),
        ("select id, embedding from faces where false", ": expected a query with rows, found no rows"),
        (
            "select nullif(id, 3) as id, embedding from faces order by faces.id",
            " (column id): row 3: expected a key, found NULL",
        ),
        ("select '' as id, embedding from faces", " (column id): row 0: expected a key, found an empty text"),
        (
            "select id, case id when 3 then null else embedding end as e from faces order by id",
            " (column e): row 3: expected an embedding, found NULL (key 3)",
        ),
        (
            "select id, case id when 3 then embedding[1:9] else embedding end as e from faces order by id",
            " (column e): row 3: expected 64 columns, as the first row has, found 9 (key 3)",
        ),
        (
            "select id, '{}'::real[] as e from faces",
            " (column e): row 0: expected at least one column, found 0 (key 0)",
        ),
        (
            "select id, array[embedding] as e from faces",
            " (column e): row 0: expected an embedding, found an array of several dimensions (key 0)",
        ),
        (
            "select id, array[1, null]::real[] as e from faces",
            " (column e): row 0: expected an embedding, found an array with a NULL in it (key 0)",
        ),
        (
            "select id, case id when 3 then array[1, 'NaN']::real[] else '{1,2}' end as e from faces order by id",
            " (column e): row 3: expected finite numbers, found NaN at position 1 (key 3)",
        ),
        (
            "select id, case id when 3 then '{0,0}' else '{1,2}'::real[] end as e from faces order by id",
            " (column e): row 3: expected a row of non-zero length, found 2 zeros (key 3)",
        ),
        (
            "select id / 2, embedding from faces order by id",
            ": row 1: expected a key that no other item has, found 0",
        ),
        (
            "select id, embedding from faces where 1 / (id - id) = 0",
            ": expected a query that the server can run, found division by zero",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(create(&url, query), format!("error: {shown}{expected}"), "{query}");
    }
    // The server.
    let query = "select id, embedding from faces";
    let wrong = url.replace(PASSWORD, "wrong");
    assert_eq!(
        create(&wrong, query),
        format!(
            "error: {shown}: expected a user and a password that the server accepts, found password authentication failed for user \"ada\""
        )
    );
    let nobody = url.replace("ada", "eve");
    assert!(create(&nobody, query).ends_with("found password authentication failed for user \"eve\""));
    let elsewhere = url.replace("/photos", "/else");
    assert!(create(&elsewhere, query).ends_with("found database \"else\" does not exist"));
    let closed = url.replace(&server.port.to_string(), "1");
    let message = create(&closed, query);
    assert!(
        message.starts_with(
            "error: postgres://ada@127.0.0.1:1/photos: expected a server that can be connected to, found "
        ),
        "{message}"
    );
    assert!(message.contains("Connection refused"), "{message}");
    let mut command = command(path, &["create", "album", "--from", &shown, "--query", query]);
    let run = checked(command.env_remove("PGPASSWORD").output().unwrap());
    assert_eq!(
        run.stderr().trim(),
        format!(
            "error: {shown}: expected a password, in the URL or in the environment as PGPASSWORD, found none"
        )
    );
    // Options.
    for (option, expected) in [
        ("?sslmode=require", "found sslmode=require"),
        ("?sslmode=verify-full", "found sslmode=verify-full"),
        ("?color=red", "found unknown option `color`"),
    ] {
        let message = create(&format!("{url}{option}"), query);
        assert!(message.starts_with("error: --from: expected ") && message.ends_with(expected), "{message}");
    }
    let usage: [(&[&str], &str); 8] = [
        (&["create", "album"], "<ALBUM> --from <URL> --query <SQL>"),
        (&["create", "album", "--from", &url], "--query <SQL>"),
        (&["create", "album", "x.npy", "--query", query], "cannot be used with"),
        (&["create", "album", "x.npy", "--from", &url, "--query", query], "cannot be used with"),
        (&["create", "album", "--keys", "x", "--from", &url, "--query", query], "--keys <FILE>"),
        (&["create", "album", "--group", "x", "--from", &url, "--query", query], "--group <FILE>"),
        // The URL in the wrong place.
        (&["create", &url, "x.npy"], "expected a directory"),
        (&["create", "album", &url], "expected a feature file"),
    ];
    for (arguments, expected) in usage {
        let message = refused(path, arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    assert_eq!(files(path), before, "something was left behind");
}

/// A table as text, to be compared.
fn digest(client: &mut Client, table: &str) -> String {
    let query = format!("SELECT coalesce(string_agg(t::text, ' ' ORDER BY t.id), '') FROM {table} t");
    client.query_one(&query, &[]).unwrap().get(0)
}

#[test]
fn people_are_written_to_a_table() {
    let Some((directory, server, first)) = prepared() else { return };
    let (path, url, shown) = (directory.path(), server.url(), server.shown());
    let mut client = server.client("photos");
    let create = |name: &str, key: &str| {
        let query = format!("select {key}, embedding from faces where first order by id");
        album(path, &["create", name, "--from", &url, "--query", &query]);
    };
    create("album", "id");
    album(path, &["name", "album", "1", "Ada \"Countess\" Lovelace"]);
    let table = ["export", "album", "--to", &url, "--table", "people_faces"];
    let written = json(path, &table);
    assert_eq!(written["rows"], first);
    assert_eq!((&written["database"], &written["table"]), (&shown.clone().into(), &"people_faces".into()));
    let types = |client: &mut Client, table: &str| -> Vec<Type> {
        let statement = client.prepare(&format!("SELECT * FROM {table}")).unwrap();
        statement.columns().iter().map(|column| column.type_().clone()).collect()
    };
    assert_eq!(types(&mut client, "people_faces"), [Type::INT8, Type::INT8, Type::TEXT]);
    // Rows are who they are in the album, with names.
    let items = json(path, &["person", "album", "1"]);
    let query = "SELECT id::text FROM people_faces WHERE person = 1 AND name = 'Ada \"Countess\" Lovelace' ORDER BY people_faces.id";
    let found: Vec<String> = client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let mut expected: Vec<String> =
        items["items"].as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect();
    expected.sort_by_key(|key| key.parse::<i64>().unwrap());
    assert_eq!(found, expected);
    let named: i64 = client.query_one("SELECT count(name) FROM people_faces", &[]).unwrap().get(0);
    assert_eq!(named as usize, expected.len());
    // Rows are replaced: the same again, and fewer.
    let before = digest(&mut client, "people_faces");
    album(path, &table);
    assert_eq!(digest(&mut client, "people_faces"), before);
    album(path, &["remove", "album", "3"]);
    let fewer = album(path, &table).stdout();
    assert!(fewer.starts_with(&format!("{} rows, ", first - 1)) && fewer.contains(&shown), "{fewer}");
    let count: i64 = client.query_one("SELECT count(*) FROM people_faces", &[]).unwrap().get(0);
    assert_eq!(count as usize, first - 1);
    // Other types of keys, schemas, and names that are no SQL.
    create("uuids", "md5(word)::uuid");
    create("words", "word");
    client.batch_execute("CREATE SCHEMA \"My schema\"").unwrap();
    let odd = "x\"; DROP TABLE faces; --";
    for (name, table, quoted, key) in [
        ("uuids", "My schema.Faces", "\"My schema\".\"Faces\"", Type::UUID),
        ("words", odd, "\"x\"\"; DROP TABLE faces; --\"", Type::TEXT),
    ] {
        album(path, &["export", name, "--to", &url, "--table", table]);
        assert_eq!(types(&mut client, quoted), [key, Type::INT8, Type::TEXT]);
    }
    let query = "SELECT count(*) FROM faces WHERE first AND md5(word)::uuid IN (SELECT id FROM \"My schema\".\"Faces\")";
    let joined: i64 = client.query_one(query, &[]).unwrap().get(0);
    assert_eq!(joined as usize, first);
    // A table of text takes any keys.
    client.batch_execute("CREATE TABLE texts(name text, id text, person bigint)").unwrap();
    album(path, &["export", "album", "--to", &url, "--table", "texts"]);
    // What is refused changes nothing.
    client
        .batch_execute(
            "CREATE VIEW seen AS SELECT * FROM people_faces; CREATE TABLE narrow(id bigint, person integer, name text);
             CREATE TABLE short(id bigint, person bigint); CREATE TABLE ids(id uuid, person bigint, name text);
             CREATE TABLE more(id bigint, person bigint, name text, photo text)",
        )
        .unwrap();
    let before = digest(&mut client, "people_faces");
    let cases = [
        (
            "words",
            "people_faces",
            "(\"people_faces\", column id): expected text, as the keys of the album are, found bigint",
        ),
        ("album", "ids", "(\"ids\", column id): expected bigint, as the keys of the album are, found uuid"),
        ("album", "faces", "(\"faces\", column person): expected bigint, found no such column"),
        ("album", "narrow", "(\"narrow\", column person): expected bigint, found integer"),
        ("album", "short", "(\"short\", column name): expected text, found no such column"),
        (
            "album",
            "more",
            "(\"more\", column photo): expected only the columns id, person and name, found photo",
        ),
        (
            "album",
            "seen",
            "(\"seen\"): expected a table, found a view, an index or something else of this name",
        ),
    ];
    for (name, table, expected) in cases {
        let message = refused(path, &["export", name, "--to", &url, "--table", table]);
        assert_eq!(message, format!("error: {shown} {expected}"));
    }
    let nowhere = refused(path, &["export", "album", "--to", &url, "--table", "none.faces"]);
    assert!(nowhere.ends_with("found schema \"none\" does not exist"), "{nowhere}");
    let long = refused(path, &["export", "album", "--to", &url, "--table", "a.b.c"]);
    assert_eq!(
        long,
        "error: --table: expected TABLE or SCHEMA.TABLE, of at most 63 bytes each, found \"a.b.c\""
    );
    for arguments in [
        &["--to", &url][..],
        &["--table", "x"],
        &["-o", "x", "--table", "x"],
        &[],
        &["-o", "x", "--to", &url, "--table", "x"],
    ] {
        refused(path, &[&["export", "album"], arguments].concat());
    }
    assert_eq!(digest(&mut client, "people_faces"), before);
    // An empty album empties the table.
    let keys: Vec<String> = people(path, "album").concat();
    let remove: Vec<&str> = ["remove", "album"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    album(path, &remove);
    album(path, &table);
    assert_eq!(digest(&mut client, "people_faces"), "");
}

/// Waits until the command is connected and does something; the number of its process in the server.
fn connected(client: &mut Client) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    let query =
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'kinfolk' AND wait_event = 'PgSleep'";
    loop {
        if let Some(row) = client.query_opt(query, &[]).unwrap() {
            return row.get(0);
        }
        assert!(Instant::now() < deadline, "the command did not connect");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn spawn(directory: &Path, arguments: &[&str]) -> Child {
    command(directory, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn failed(child: Child) -> String {
    let run = checked(child.wait_with_output().unwrap());
    assert_eq!(run.code(), 1, "{}", run.stdout());
    run.stderr().trim().to_owned()
}

#[test]
fn a_connection_lost_while_reading_leaves_no_album_and_changes_none() {
    let Some((directory, server, _)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    let mut client = server.client("photos");
    let create = "select id, embedding from faces where first order by id";
    album(path, &["create", "old", "--from", &url, "--query", create]);
    let (before, history) = (people(path, "old"), json(path, &["history", "old"]));
    // Not sorted, so that rows are sent while others are waited for.
    let slow = "select id, embedding from faces where not first and pg_sleep(0.02) is not null";
    for arguments in [["create", "new"], ["add", "old"]] {
        let child = spawn(path, &[&arguments[..], &["--from", &url, "--query", slow]].concat());
        let process = connected(&mut client);
        std::thread::sleep(Duration::from_millis(500));
        client.execute("SELECT pg_terminate_backend($1)", &[&process]).unwrap();
        let message = failed(child);
        let expected = format!("error: {}: expected all rows of the query; ", server.shown());
        assert!(message.starts_with(&expected), "{message}");
        // What the server said last may have come with it or not.
        assert!(message.contains(" came, found a lost connection ("), "{message}");
    }
    assert!(!path.join("new").exists());
    assert_eq!((people(path, "old"), json(path, &["history", "old"])), (before, history));
    assert_eq!(json(path, &["verify", "old"])["damages"].as_array().unwrap().len(), 0);
}

/// Cancels a moment after it began.
struct Impatient(Instant);

impl Progress for Impatient {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn cancelled(&self) -> bool {
        self.0.elapsed() > Duration::from_millis(300)
    }
}

#[test]
fn cancelling_ends_a_query_that_waits() {
    let Some(server) = Server::start() else { return };
    let database = Database::new(&server.url(), None).unwrap();
    // Before the first row, and between rows.
    for query in [
        "select 1, '{1}'::real[] from pg_sleep(600)",
        "select i, '{1}'::real[] from generate_series(1, 1000000000) i",
    ] {
        let start = Instant::now();
        let found = database.read(query, None, &Impatient(start));
        assert!(matches!(found, Err(kinfolk::Error::Cancelled)), "{found:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{query}");
    }
    let query =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kinfolk' AND state = 'active'";
    let running: i64 = server.client("photos").query_one(query, &[]).unwrap().get(0);
    assert_eq!(running, 0);
}

#[test]
fn a_server_killed_while_it_is_written_to_keeps_the_old_rows() {
    let Some((directory, mut server, first)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    let mut client = server.client("photos");
    let create = "select id, embedding from faces where first order by id";
    album(path, &["create", "album", "--from", &url, "--query", create]);
    album(path, &["export", "album", "--to", &url, "--table", "people"]);
    let before = digest(&mut client, "people");
    album(path, &["name", "album", "1", "Ada"]);
    // Each new row takes a while.
    client
        .batch_execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END';
             CREATE TRIGGER slow BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION wait()",
        )
        .unwrap();
    // One whose backend is ended, then one whose server is killed.
    let export = |url: &str| spawn(path, &["export", "album", "--to", url, "--table", "people"]);
    let child = export(&url);
    let process = connected(&mut client);
    client.execute("SELECT pg_terminate_backend($1)", &[&process]).unwrap();
    let message = failed(child);
    assert!(
        message.contains("expected all rows of \"people\" to be written, found a lost connection ("),
        "{message}"
    );
    assert_eq!(digest(&mut client, "people"), before);
    let child = export(&url);
    connected(&mut client);
    server.kill();
    let message = failed(child);
    assert!(
        message.contains("expected all rows of \"people\" to be written, found a lost connection ("),
        "{message}"
    );
    server.restart();
    let mut client = server.client("photos");
    assert_eq!(digest(&mut client, "people"), before);
    client.batch_execute("DROP TRIGGER slow ON people").unwrap();
    album(path, &["export", "album", "--to", &server.url(), "--table", "people"]);
    let count: i64 = client.query_one("SELECT count(*) FROM people", &[]).unwrap().get(0);
    assert_eq!(count as usize, first);
    assert_ne!(digest(&mut client, "people"), before);
}

#[test]
fn a_reader_sees_the_old_rows_or_the_new_ones() {
    let Some((directory, server, _)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    let create = |name: &str, which: &str| {
        let query = format!("select id, embedding from faces where {which} order by id");
        album(path, &["create", name, "--from", &url, "--query", &query]);
    };
    create("one", "first");
    create("other", "id % 2 = 0");
    let mut client = server.client("photos");
    let mut export = |name: &str| {
        album(path, &["export", name, "--to", &url, "--table", "people"]);
        digest(&mut client, "people")
    };
    let states = [export("one"), export("other")];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut client = server.client("photos");
            let mut seen = [0; 2];
            while !done.load(Ordering::Relaxed) {
                let found = digest(&mut client, "people");
                let state = states.iter().position(|state| *state == found);
                seen[state.expect("a mixture of two states")] += 1;
            }
            seen
        });
        for _ in 0..8 {
            assert_eq!(export("one"), states[0]);
            assert_eq!(export("other"), states[1]);
        }
        done.store(true, Ordering::Relaxed);
        let seen = reader.join().unwrap();
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    });
}

#[test]
fn the_password_is_nowhere() {
    let Some((directory, server, _)) = prepared() else { return };
    let (path, url) = (directory.path(), server.url());
    let query = "select id, embedding, photo from faces where first order by id";
    // In the URL, in an option of it, and in the environment; all output is looked at by `checked`.
    let option = format!("{}?password={PASSWORD}", server.shown());
    let others = "select id, embedding from faces where not first order by id";
    for (at, url) in [&url, &option, &server.shown()].into_iter().enumerate() {
        let name = format!("album{at}");
        album(path, &["create", &name, "--from", url, "--query", query]);
        album(path, &["add", &name, "--from", url, "--query", others]);
        album(path, &["export", &name, "--to", url, "--table", "people", "--json"]);
        album(path, &["history", &name]);
        for file in files(&path.join(&name)) {
            let bytes = fs::read(&file).unwrap();
            let found = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
            assert!(!found, "{}", file.display());
        }
    }
}
