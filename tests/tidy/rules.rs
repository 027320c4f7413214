//! The rules. Each checks one file or the whole repository and returns complaints.

use std::collections::BTreeSet;

use crate::source::{File, RustSource, words};

/// A rule for one file.
pub type TidyRule = fn(&File, &RustSource) -> Vec<String>;

/// The crates above the domain, which all may use. The manifests say who may use which crate.
pub const CRATES: [&str; 6] = ["adapters", "client", "mcp_guard", "service", "store", "web"];

/// Each module of the root package, with what it may use. The store and the web are here because they may use only some of
/// the adapters.
pub const MODULES: &[(&str, &[&str])] = &[
    // The embedded database has no clock except the system's, and no network but its own.
    ("store", &["adapters::clock", "adapters::tls"]),
    (
        "web",
        &["adapters::archives", "adapters::metrics", "adapters::network", "adapters::random", "mcp_guard", "service"],
    ),
    ("config", &["adapters", "mcp_guard", "web"]),
    // Guarded states in files. The gateway's own states are in the store.
    ("state_file", &[]),
    // Run artifacts in a folder.
    ("episode_folder", &[]),
    ("worker", &["adapters", "service"]),
    // Wiring: builds the service from the configuration.
    ("wiring", &["adapters", "config", "service", "store"]),
    (
        "cli",
        &[
            "adapters",
            "client",
            "config",
            "episode_folder",
            "mcp_guard",
            "service",
            "state_file",
            "store",
            "web",
            "wiring",
            "worker",
        ],
    ),
    ("main", &["cli"]),
    ("lib", &[]),
];

/// A function fits on a screen, and a file has one subject. The binary contains only wiring.
const FUNCTION_LINES_MAX: usize = 60;
const FILE_LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 59;

/// The demo's writer has its own database, which is not the gateway's.
const OTHER_DATABASES: [&str; 1] = ["src/cli/demo/target_database.rs"];

/// Slow work that no request starts, such as archiving. Also password hashing, which has its own concurrency limit
/// because it runs before the caller is known.
const OUT_OF_TURN: [&str; 4] = [
    "crates/service/src/archive/move_versions.rs",
    "crates/service/src/archive/erase.rs",
    "crates/service/src/identity/password_hash.rs",
    "crates/service/src/archive/restore.rs",
];

/// A shorter hexadecimal text occurs in an id sooner or later.
const CHANCE_MAX: usize = 8;

/// The rules for one Rust file.
pub fn rust_rules() -> [TidyRule; 12] {
    [
        arrows,
        pure_domain,
        databases_in_store,
        sql_in_store,
        turns,
        forms,
        handler_capabilities,
        sizes,
        tuple_parameters,
        silenced,
        printing,
        chances,
    ]
}

pub fn is_ours(file: &File) -> bool {
    (file.path.starts_with("src/") || in_crate(file).is_some()) && !is_test(file)
}

fn in_domain(file: &File) -> bool {
    in_crate(file) == Some("domain")
}

/// Returns the folder of a file's crate in `crates/`, and nothing in the root package.
pub fn in_crate(file: &File) -> Option<&str> {
    let (folder, inside) = file.path.strip_prefix("crates/")?.split_once('/')?;
    inside.starts_with("src/").then_some(folder)
}

fn is_test(file: &File) -> bool {
    let path = &file.path;
    path.starts_with("tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

/// Returns the path of a module in its crate. `src/a/b.rs` is `["a", "b"]`, and `crates/c/src/a/mod.rs` is `["a"]`.
pub fn module(file: &File) -> Vec<&str> {
    let path = in_crate(file).map_or(file.path.as_str(), |it| &file.path["crates/".len() + it.len() + 1..]);
    let path = path.strip_prefix("src/").unwrap_or(path);
    let path = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    path.split('/').collect()
}

fn say(file: &File, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", file.path)
}

pub fn arrows(file: &File, source: &RustSource) -> Vec<String> {
    let module = module(file);
    let own = match in_crate(file) {
        _ if !is_ours(file) => return Vec::new(),
        Some(own) if !MODULES.iter().any(|it| it.0 == own) => return Vec::new(),
        Some(own) => own,
        None => module[0],
    };
    let Some((_, below)) = MODULES.iter().find(|it| it.0 == own) else {
        return vec![say(file, format_args!("`{own}` is no module of the codebase (ARCHITECTURE.md)"))];
    };
    let known = |to: &str| CRATES.contains(&layer(to)) || MODULES.iter().any(|it| it.0 == to);
    let allowed = |to: &str| to == own || !known(to) || below.contains(&to) || below.contains(&layer(to));
    let named = roots(&squeezed(&source.code), in_crate(file).is_none().then_some(module.len()));
    named.iter().filter(|to| !allowed(to)).map(|to| say(file, format_args!("{own} must not use {to}"))).collect()
}

/// `adapters::clock` is in the layer `adapters`.
pub fn layer(name: &str) -> &str {
    name.split("::").next().unwrap_or(name)
}

/// Returns the modules and crates that a file names. `depth` is the one of a file in the root package. A form of naming
/// that cannot be resolved counts as `main`, which no module may use.
fn roots(code: &str, depth: Option<usize>) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    if let Some(depth) = depth {
        for start in ["crate", "countersign", &vec!["super"; depth].join("::")] {
            roots.extend(named_below(code, start));
        }
    }
    roots.extend(named_below(code, "countersign_adapters").into_iter().map(|it| format!("adapters::{it}")));
    for layer in ["client", "mcp_guard", "service", "store", "web"] {
        let named = !named_below(code, &format!("countersign_{layer}")).is_empty();
        roots.extend(named.then(|| layer.to_owned()));
    }
    roots
}

/// Returns the words that follow `start::` in the code.
fn named_below(code: &str, start: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices(start) {
        let inside = code[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let deeper = code[..at].ends_with("super::");
        match code[at + start.len()..].strip_prefix("::") {
            _ if inside || deeper => (),
            Some(rest) if rest.starts_with('{') => named.extend(heads(rest)),
            Some(rest) => named.extend(head(rest)),
            None if code[at + start.len()..].starts_with(" as ") => drop(named.insert("main".to_owned())),
            None => (),
        }
    }
    named
}

/// Returns the first word of a path. A glob imports everything.
fn head(path: &str) -> Option<String> {
    let word: String = path.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    match path.starts_with('*') {
        true => Some("main".to_owned()),
        false => (!word.is_empty()).then_some(word),
    }
}

/// Returns the first words of the paths in a group. `{a::b, c::{d, e}}` gives a and c.
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

/// Removes the spaces that have no meaning. One space stays between words.
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
    // The manifest keeps out libraries for the web, databases, async and randomness.
    const STD: [&str; 5] = ["fs", "env", "process", "thread", "io"];
    if !is_ours(file) || !in_domain(file) {
        return Vec::new();
    }
    let code = squeezed(&source.code);
    let from_std = code.match_indices("std::").flat_map(|(at, it)| {
        // The trait is the way to format bytes into memory.
        let rest = code[at + it.len()..].trim_start_matches("io::Write");
        if rest.starts_with('{') { heads(rest) } else { head(rest).into_iter().collect() }
    });
    let outside = from_std.filter(|it| STD.contains(&it.as_str()));
    uses(source, &["async"])
        .into_iter()
        .chain(outside)
        .map(|it| say(file, format_args!("domain is pure, {it} is not")))
        .collect()
}

pub fn databases_in_store(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || in_crate(file) == Some("store") || OTHER_DATABASES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = uses(source, &["rusqlite", "tokio_postgres", "deadpool_postgres"]);
    found.into_iter().map(|it| say(file, format_args!("{it} belongs into crates/store"))).collect()
}

/// Form fields are only accessible together with the check of the CSRF token.
pub fn forms(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file)
        || file.path == "crates/web/src/pages/shared/form.rs"
        || !squeezed(&source.code).contains("web::Form<")
    {
        return Vec::new();
    }
    vec![say(file, "web::Form is taken from anybody, take pages::form::Form")]
}

/// A handler gets the capabilities that its signature names. Extractors may take others out of the request.
pub fn handler_capabilities(file: &File, source: &RustSource) -> Vec<String> {
    const STATE: &str = "crates/web/src/state.rs";
    const EXTRACTORS: [&str; 4] = [
        "crates/web/src/api/idempotency_key.rs",
        "crates/web/src/api/problem/mod.rs",
        "crates/web/src/pages/shared/form.rs",
        "crates/web/src/pages/shared/visitor.rs",
    ];
    let path = file.path.as_str();
    if !is_ours(file) || in_crate(file) != Some("web") || path == STATE {
        return Vec::new();
    }
    let is_handler = matches!(module(file)[0], "api" | "pages") && !EXTRACTORS.contains(&path);
    let forbidden: &[&str] = if is_handler { &["AppState", "FromState", "Service"] } else { &["Service"] };
    let code = squeezed(&source.code);
    let taken = ["Capability::", "Capabilities::"].into_iter().filter(|it| is_handler && code.contains(it));
    let found = uses(source, forbidden).into_iter().chain(taken.map(str::to_owned));
    let advice = "name each capability in the signature of the handler";
    found.map(|it| say(file, format_args!("{it} gives a handler more than it uses: {advice}"))).collect()
}

/// Blocking work of a request must run under the concurrency limit of its caller.
pub fn turns(file: &File, source: &RustSource) -> Vec<String> {
    let taken = file.path == "crates/service/src/platform/fair_queue.rs" || OUT_OF_TURN.contains(&file.path.as_str());
    if !is_ours(file) || in_crate(file) != Some("service") || taken {
        return Vec::new();
    }
    let found = uses(source, &["spawn_blocking"]);
    found.into_iter().map(|it| say(file, format_args!("{it} is out of turn, begin it by Turn::work"))).collect()
}

pub fn sql_in_store(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) || in_crate(file) == Some("store") || OTHER_DATABASES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = source.texts.iter().filter(|it| is_sql(&it.1));
    found.map(|(line, _)| say(file, format_args!("line {line}: SQL belongs into crates/store"))).collect()
}

fn is_sql(text: &str) -> bool {
    /// A statement begins with these words in a row. The others must follow later in the text.
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
        // Lower-case SQL counts only if it is the whole text, because pages may contain the word "select".
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

/// A tuple of parameters gives their group no name, and hides their number from the lint `too_many_arguments`.
pub fn tuple_parameters(file: &File, source: &RustSource) -> Vec<String> {
    if !is_ours(file) {
        return Vec::new();
    }
    let found = source.functions_with_tuple_parameters().into_iter().map(|name| {
        let advice = "give each value its own parameter, or group them in a struct with a name from the domain";
        say(file, format_args!("fn {name} has a tuple as a parameter: {advice}"))
    });
    found.collect()
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

/// A test that checks for absence needs a text that no id, digest or token contains by chance.
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

/// Returns the text without fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// Returns a quoted word that can only be a path of this repository.
fn looks_like_ours(text: &str) -> bool {
    const FOLDERS: [&str; 14] = [
        "src/",
        "crates/",
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

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`. The matches of a star are not checked.
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
