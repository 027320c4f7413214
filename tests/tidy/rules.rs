//! The rules. Each looks at one file, or at the repository, and says what is wrong.

use std::collections::BTreeSet;

use crate::source::{File, RustSource, words};

/// From one file to complaints.
pub type TidyRule = fn(&File, &RustSource) -> Vec<String>;

/// The rooms of the house, each with those below it that it may use.
pub const ROOMS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    // The embedded database has no clock but the machine's.
    ("store", &["domain", "clock", "tls"]),
    ("clock", &["domain"]),
    ("random", &["domain"]),
    ("keyring", &["domain", "clock", "random"]),
    ("config", &["domain", "keyring"]),
    // The guard's states in files; the gateway's own are in the store.
    ("state_file", &["domain"]),
    // What remains of a run, in a folder.
    ("episode_folder", &["domain"]),
    // States that are no longer in the database, in files.
    ("archives", &["domain"]),
    // Where the copy of the log goes.
    ("log_sink", &["config"]),
    // Mail to people, by one server.
    ("mail", &["domain", "config", "tls"]),
    // Traces to a collector.
    ("traces", &["domain", "config", "tls"]),
    // What a gateway counts of itself.
    ("metrics", &["domain"]),
    // TLS to others, chosen once.
    ("tls", &[]),
    // The OpenID provider, over HTTP.
    ("oidc_provider", &["domain", "clock", "config", "tls"]),
    // HTTP to addresses that somebody gave us.
    ("http_client", &["domain", "clock", "config", "tls"]),
    (
        "service",
        &[
            "domain",
            "store",
            "clock",
            "random",
            "keyring",
            "config",
            "oidc_provider",
            "metrics",
            "mail",
            "http_client",
            "traces",
            "archives",
        ],
    ),
    (
        "worker",
        &["domain", "service", "clock", "random", "keyring", "config", "metrics", "mail", "http_client", "log_sink"],
    ),
    ("web", &["domain", "service", "clock", "random", "keyring", "config", "metrics", "archives"]),
    // Wiring: from a configuration to a service on its store.
    (
        "wiring",
        &[
            "domain",
            "store",
            "service",
            "clock",
            "random",
            "keyring",
            "config",
            "oidc_provider",
            "http_client",
            "traces",
            "archives",
        ],
    ),
    (
        "cli",
        &[
            "wiring",
            "domain",
            "store",
            "service",
            "worker",
            "web",
            "clock",
            "random",
            "keyring",
            "config",
            "state_file",
            "episode_folder",
            "archives",
            "tls",
            "mail",
        ],
    ),
    ("main", &["cli", "wiring", "domain", "store", "service", "worker", "web", "clock", "random", "keyring", "config"]),
    ("lib", &[]),
];

/// A function fits a screen, a file one idea; the binary only wires.
const FUNCTION_LINES_MAX: usize = 60;
const FILE_LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 59;

/// The database that the demonstration's writer writes to is not the gateway's.
const OTHER_DATABASES: [&str; 1] = ["src/cli/demo/target_database.rs"];

/// What takes long and is begun by no request: the archives' own work. And passwords, which have a turnstile before it is
/// known who asks.
const OUT_OF_TURN: [&str; 4] = [
    "src/service/archive/mod.rs",
    "src/service/archive/erase.rs",
    "src/service/identity/password_hash.rs",
    "src/service/archive/restore.rs",
];

/// A text of hexadecimal digits that is shorter stands in some id, some day.
const CHANCE_MAX: usize = 8;

/// The rules for one Rust file.
pub fn rust_rules() -> [TidyRule; 10] {
    [arrows, pure_domain, databases_in_store, sql_in_store, turns, forms, sizes, silenced, printing, chances]
}

pub fn is_ours(file: &File) -> bool {
    file.path.starts_with("src/") && !is_test(file)
}

fn is_test(file: &File) -> bool {
    let path = &file.path;
    path.starts_with("tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

/// `src/a/b.rs` is `["a", "b"]`, `src/a/mod.rs` is `["a"]`.
pub fn module(file: &File) -> Vec<&str> {
    let path = file.path.strip_prefix("src/").unwrap_or(&file.path);
    let path = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    path.split('/').collect()
}

fn say(file: &File, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", file.path)
}

pub fn arrows(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) {
        return Vec::new();
    }
    let module = module(file);
    let Some((room, below)) = ROOMS.iter().find(|it| it.0 == module[0]) else {
        return vec![say(file, format_args!("`{}` is no room of the house (ARCHITECTURE.md)", module[0]))];
    };
    let allowed = |to: &str| to == *room || below.contains(&to) || !ROOMS.iter().any(|it| it.0 == to);
    let named = roots(&squeezed(&source.code), module.len());
    named.iter().filter(|to| !allowed(to)).map(|to| say(file, format_args!("{room} must not use {to}"))).collect()
}

/// What a file names at the root of the crate. A way of naming that cannot be followed counts as `main`,
/// which nobody may use.
fn roots(code: &str, depth: usize) -> BTreeSet<String> {
    let up = format!("{}::", vec!["super"; depth].join("::"));
    let mut roots = BTreeSet::new();
    for start in ["crate", "countersign", up.trim_end_matches("::")] {
        for (at, _) in code.match_indices(start) {
            let inside = code[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
            let deeper = code[..at].ends_with("super::");
            match code[at + start.len()..].strip_prefix("::") {
                _ if inside || deeper => (),
                Some(rest) if rest.starts_with('{') => roots.extend(heads(rest)),
                Some(rest) => roots.extend(head(rest)),
                None if code[at + start.len()..].starts_with(" as ") => drop(roots.insert("main".to_owned())),
                None => (),
            }
        }
    }
    roots
}

/// The first word of a path; a glob takes everything.
fn head(path: &str) -> Option<String> {
    let word: String = path.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    match path.starts_with('*') {
        true => Some("main".to_owned()),
        false => (!word.is_empty()).then_some(word),
    }
}

/// The first words of the paths in a group: `{a::b, c::{d, e}}` gives a and c.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads) = (0, Vec::new());
    for (at, it) in group.char_indices() {
        match it {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(it, '{' | ',') {
            heads.extend(head(&group[at + 1..]));
        }
    }
    heads
}

/// Code without the spaces that mean nothing; one is left between words.
pub fn squeezed(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for piece in code.split_whitespace() {
        let word = |it: char| it.is_alphanumeric() || it == '_';
        if out.ends_with(word) && piece.starts_with(word) {
            out.push(' ');
        }
        out.push_str(piece);
    }
    out
}

fn uses(source: &RustSource, names: &[&str]) -> Vec<String> {
    let code: Vec<char> = source.code.chars().collect();
    let found: BTreeSet<String> = words(&code).map(|it| it.1).filter(|it| names.contains(&it.as_str())).collect();
    found.into_iter().collect()
}

pub fn pure_domain(file: &File, source: &RustSource) -> Vec<String> {
    const EDGES: [&str; 9] = [
        "async",
        "tokio",
        "actix_web",
        "reqwest",
        "rusqlite",
        "tokio_postgres",
        "deadpool_postgres",
        "getrandom",
        "tracing",
    ];
    const STD: [&str; 5] = ["fs", "env", "process", "thread", "io"];
    if !is_ours(file) || module(file)[0] != "domain" {
        return Vec::new();
    }
    let code = squeezed(&source.code);
    let from_std = code.match_indices("std::").flat_map(|(at, it)| {
        // The trait is how bytes are formatted into memory.
        let rest = code[at + it.len()..].trim_start_matches("io::Write");
        if rest.starts_with('{') { heads(rest) } else { head(rest).into_iter().collect() }
    });
    let outside = from_std.filter(|it| STD.contains(&it.as_str()));
    uses(source, &EDGES)
        .into_iter()
        .chain(outside)
        .map(|it| say(file, format_args!("domain is pure, {it} is not")))
        .collect()
}

pub fn databases_in_store(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || module(file)[0] == "store" || OTHER_DATABASES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = uses(source, &["rusqlite", "tokio_postgres", "deadpool_postgres"]);
    found.into_iter().map(|it| say(file, format_args!("{it} belongs into src/store"))).collect()
}

/// Fields of forms are had only together with the check that a page of ours sent them.
pub fn forms(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || file.path == "src/web/pages/shared/form.rs" || !squeezed(&source.code).contains("web::Form<") {
        return Vec::new();
    }
    vec![say(file, "web::Form is taken from anybody, take pages::form::Form")]
}

/// Whatever a request begins beside the threads that answer, it begins in its asker's turn.
pub fn turns(file: &File, source: &RustSource) -> Vec<String> {
    let taken = file.path == "src/service/platform/fair_queue.rs" || OUT_OF_TURN.contains(&file.path.as_str());
    if !is_ours(file) || module(file)[0] != "service" || taken {
        return Vec::new();
    }
    let found = uses(source, &["spawn_blocking"]);
    found.into_iter().map(|it| say(file, format_args!("{it} is out of turn, begin it by Turn::work"))).collect()
}

pub fn sql_in_store(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || module(file)[0] == "store" || OTHER_DATABASES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = source.texts.iter().filter(|it| is_sql(&it.1));
    found.map(|(line, _)| say(file, format_args!("line {line}: SQL belongs into src/store"))).collect()
}

fn is_sql(text: &str) -> bool {
    /// A statement begins with these words in a row; what follows must stand somewhere behind them.
    const STATEMENTS: [(&str, &str); 10] = [
        ("SELECT", "FROM"),
        ("INSERT INTO", ""),
        ("UPDATE", "SET"),
        ("DELETE FROM", ""),
        ("CREATE TABLE", ""),
        ("CREATE INDEX", ""),
        ("ALTER TABLE", ""),
        ("DROP TABLE", ""),
        ("PRAGMA", ""),
        ("BEGIN IMMEDIATE", ""),
    ];
    let words = |text: &str| {
        text.split(|it: char| !it.is_alphanumeric() && it != '_')
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (shouted, plain) = (format!(" {} ", words(text)), format!(" {} ", words(&text.to_uppercase())));
    STATEMENTS.iter().any(|(start, then)| {
        let behind = |text: &str, at: usize| then.is_empty() || text[at..].contains(&format!(" {then} "));
        let start = format!(" {start} ");
        let loud = shouted.find(&start).is_some_and(|at| behind(&shouted, at));
        // In small letters only a text that is nothing else: pages may say "select".
        loud || (plain.starts_with(&start) && !text.contains([';', '.', '?']) && behind(&plain, 0))
    })
}

pub fn sizes(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) {
        return Vec::new();
    }
    let most = if file.path == "src/main.rs" { MAIN_LINES_MAX } else { FILE_LINES_MAX };
    let long = (source.lines > most).then(|| say(file, format_args!("{} lines, at most {most}", source.lines)));
    let functions = source.functions().into_iter().filter(|it| it.2 > FUNCTION_LINES_MAX);
    let functions = functions.map(|(name, line, lines)| {
        say(file, format_args!("line {line}: fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"))
    });
    long.into_iter().chain(functions).collect()
}

pub fn silenced(file: &File, source: &RustSource) -> Vec<String> {
    let code = squeezed(&source.all_code);
    let allows = code.match_indices("allow(").filter(|(at, _)| {
        let before = &code[..*at];
        before.ends_with("#[")
            || before.ends_with("#![")
            || (before.ends_with(',') && before.rfind("cfg_attr(") > before.rfind(']'))
    });
    let allows = allows.map(|_| say(file, "say #[expect(lint, reason = \"…\")], not allow"));
    let ignores = code.match_indices("#[ignore").map(|_| say(file, "a test that is ignored protects nothing"));
    allows.chain(ignores).collect()
}

pub fn printing(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || module(file)[0] == "cli" {
        return Vec::new();
    }
    let code: Vec<char> = source.code.chars().collect();
    let prints = ["println", "print", "eprintln", "eprint", "dbg"];
    let found = words(&code).filter(|(at, it)| prints.contains(&it.as_str()) && code.get(at + it.len()) == Some(&'!'));
    found.map(|(_, it)| say(file, format_args!("{it}! belongs into src/cli; elsewhere log"))).collect()
}

/// What must not be there is looked for by a text that no id, digest or token has by chance.
pub fn chances(file: &File, _source: &RustSource) -> Vec<String> {
    if !file.path.starts_with("tests/") || file.path == "tests/tidy.rs" {
        return Vec::new();
    }
    let parts: Vec<&str> = file.text.split(".contains(\"").collect();
    let found = parts.iter().zip(parts.iter().skip(1)).filter_map(|(before, after)| {
        let of = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let text = after.split('"').next().unwrap_or_default();
        let denied = of.starts_with('!') || of.contains("(!");
        let short = text.len() < CHANCE_MAX && text.chars().all(|it| it == '-' || it.is_ascii_hexdigit());
        (denied && short).then(|| say(file, format_args!("an id may hold {text:?} by chance, take a longer text")))
    });
    found.collect()
}

pub fn migrations(files: &[File]) -> Vec<String> {
    let all: Vec<&str> = files.iter().filter_map(|it| it.path.strip_prefix("migrations/")).collect();
    let of = |database: &str| -> BTreeSet<&str> { all.iter().filter_map(|it| it.strip_prefix(database)).collect() };
    let (sqlite, postgres) = (of("sqlite/"), of("postgres/"));
    let alone = sqlite.symmetric_difference(&postgres);
    let mut found: Vec<String> = alone.map(|it| format!("migrations: {it} is there for one database only")).collect();
    let strange = all.iter().filter(|it| !it.starts_with("sqlite/") && !it.starts_with("postgres/"));
    found.extend(strange.map(|it| format!("migrations: {it} is for no database we know")));
    let paired = sqlite.intersection(&postgres).enumerate();
    let misnamed = paired.filter(|(at, it)| !it.starts_with(&format!("{:04}_", at + 1)));
    found.extend(misnamed.map(|(at, it)| format!("migrations: {it} should begin with {:04}_", at + 1)));
    found
}

pub fn named_paths(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|it| it.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |it| it.0);
        let prose = prose(&file.text);
        let links = prose.split("](").skip(1).filter_map(|it| it.split(')').next());
        let links = links.filter(|it| !it.contains("://") && !it.starts_with(['#', '/']) && !it.starts_with("mailto:"));
        let linked = links.map(|it| beside(folder, it.split('#').next().unwrap_or(it)));
        let quoted = prose.split('`').skip(1).step_by(2).filter(|it| looks_like_ours(it));
        let named = linked.chain(quoted.flat_map(|it| spread(it.trim_start_matches("./"))));
        found.extend(named.filter(|it| !exists(files, it)).map(|it| say(file, format_args!("there is no {it}"))));
    }
    found
}

/// The text without fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// A quoted word that can only mean a path of this repository.
fn looks_like_ours(text: &str) -> bool {
    const FOLDERS: [&str; 13] = [
        "src/",
        "tests/",
        "docs/",
        "migrations/",
        "templates/",
        "static/",
        "benches/",
        "fuzz/",
        "clients/",
        "examples/",
        ".ci/",
        "./test",
        "policies/",
    ];
    let plain = text.chars().all(|it| it.is_ascii_alphanumeric() || "/._-{},*".contains(it));
    let page = text.ends_with(".md") && !text.contains('*');
    plain && (page || FOLDERS.iter().any(|it| text.starts_with(it)))
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`; what a star stands for is not looked at.
fn spread(text: &str) -> Vec<String> {
    let text = text.split('*').next().unwrap_or(text);
    match (text.split_once('{'), text.split_once('}')) {
        (Some((before, rest)), Some((_, after))) => {
            let inner = rest.split('}').next().unwrap_or(rest);
            inner.split(',').map(|it| format!("{before}{it}{after}")).collect()
        }
        _ => vec![text.to_owned()],
    }
}

fn beside(folder: &str, link: &str) -> String {
    let mut path: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for step in link.split('/') {
        match step {
            "." | "" => (),
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.join("/")
}

fn exists(files: &[File], path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    files.iter().any(|it| it.path == path || it.path.starts_with(&folder))
}
