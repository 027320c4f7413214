//! `audit --export`: replays exported files with published keys and nothing else. No gateway, no network, no database.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::output::Output;
use super::super::{CliError, Exit};
use crate::archives::{read_bounded, unpacked};
use crate::domain::archive::{Content, PLAIN_BYTES_MAX};
use crate::domain::chain::export::{Broken, Chain, Exhibit, Exported};
use crate::domain::chain::jws::{self, Typ};
use crate::domain::chain::receipt::Receipt;
use crate::domain::id::ThreadId;
use crate::domain::json::parse::{DEPTH_CEILING, Limits, parse};
use crate::domain::keys::PublicKeys;

/// Folders in folders that are looked into.
const FOLDERS_MAX: usize = 8;

/// What the published keys are called in an export.
const KEYS: &str = "jwks.json";

/// Something that is not so.
struct Finding {
    place: String,
    version: Option<u64>,
    broken: Broken,
}

/// A stretch of a chain, as one file has it.
struct Piece {
    file: String,
    content: Stretch,
}

enum Stretch {
    /// A page of the chain, and whether it says that more follow.
    Page(Vec<Exported>, bool),
    Archive(Box<Content>),
}

/// What was found of everything.
#[derive(Default)]
struct Audited {
    findings: Vec<Finding>,
    doubts: Vec<String>,
    unseen: Vec<String>,
    passed_over: Vec<String>,
    pieces: BTreeMap<ThreadId, Vec<Piece>>,
    receipts: Vec<(String, String)>,
    chains: BTreeMap<ThreadId, Chain>,
    approvals: BTreeMap<ThreadId, usize>,
}

/// Yes if all of it holds, no with a list of what does not, could not tell where a retired key is all that vouches.
pub fn run(folder: &Path, jwks: Option<&Path>, out: &mut Output<'_>) -> Result<Exit, CliError> {
    let keys = published(folder, jwks)?;
    let mut audited = Audited::default();
    for path in files(folder, FOLDERS_MAX)? {
        audited.read(&path, &path.strip_prefix(folder).unwrap_or(&path).display().to_string())?;
    }
    audited.replay(&keys);
    audited.hold_branches();
    audited.hold_receipts(&keys);
    if audited.chains.is_empty() && audited.findings.is_empty() {
        return Err(CliError::Given(format!(
            "{} holds no chain: save the pages of `GET /v1/threads/THREAD/chain` there, each as a file that ends in .json",
            folder.display()
        )));
    }
    out.answer(audited.text(), || audited.told())?;
    Ok(match (audited.findings.is_empty(), audited.doubts.is_empty()) {
        (false, _) => Exit::No,
        (true, false) => Exit::CouldNotTell,
        (true, true) => Exit::Yes,
    })
}

fn published(folder: &Path, jwks: Option<&Path>) -> Result<PublicKeys, CliError> {
    let path = jwks.map_or_else(|| folder.join(KEYS), Path::to_owned);
    let named = path.display().to_string();
    let bytes = read(&path).map_err(|error| match (error, jwks) {
        (CliError::Read { .. }, None) => CliError::Given(format!(
            "there is no {named} that can be read: save what `GET /.well-known/jwks.json` answers there, or name a set that you trust with --jwks FILE"
        )),
        (error, _) => error,
    })?;
    let keys = parse(&bytes, &Limits { bytes_max: bytes.len(), ..Limits::default() });
    let keys = keys.map_err(|error| CliError::Given(format!("{named} is not strict JSON: {}", error.code.as_str())))?;
    PublicKeys::from_jwks(&keys)
        .map_err(|error| CliError::Given(format!("{named} cannot be trusted as a whole: {error}")))
}

/// Every file in the folder and in those in it, in the order of their names. No link is followed.
fn files(folder: &Path, deep: usize) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::Read { what: folder.display().to_string(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && deep > 0 {
            found.extend(files(&entry.path(), deep - 1)?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    read_bounded(path, PLAIN_BYTES_MAX).map_err(|source| CliError::Read { what: path.display().to_string(), source })
}

impl Piece {
    fn exhibits(&self) -> Box<dyn Iterator<Item = Exhibit<'_>> + '_> {
        match &self.content {
            Stretch::Page(items, _) => Box::new(items.iter().map(Exported::exhibit)),
            Stretch::Archive(content) => Box::new(content.entries.iter().map(|it| it.exhibit())),
        }
    }

    /// Its first version and its last.
    fn ends(&self) -> (u64, u64) {
        let mut versions = self.exhibits().map(|it| it.version);
        let first = versions.next().unwrap_or_default();
        (first, versions.last().unwrap_or(first))
    }
}

const fn chain(what: &'static str) -> Broken {
    Broken { code: "chain", what }
}

/// Reading.
impl Audited {
    fn read(&mut self, path: &Path, file: &str) -> Result<(), CliError> {
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if name == KEYS {
            return Ok(());
        }
        if name.ends_with(".json.gz") {
            let content = unpacked(&read(path)?, PLAIN_BYTES_MAX).and_then(|it| Content::read(&it));
            match content {
                Some(it) => self.add(it.thread().clone(), file, Stretch::Archive(Box::new(it))),
                None => self.find(file, None, chain("it is not an archive, or not a whole one")),
            }
        } else if name.ends_with(".json") {
            match page(&read(path)?) {
                Ok((thread, page)) => self.add(thread, file, page),
                Err((version, broken)) => self.find(file, version, broken),
            }
        } else if name.ends_with(".jwt") {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            self.receipts.push((file.to_owned(), text.strip_suffix('\n').unwrap_or(&text).to_owned()));
        } else {
            self.passed_over.push(file.to_owned());
        }
        Ok(())
    }

    fn add(&mut self, thread: ThreadId, file: &str, content: Stretch) {
        self.pieces.entry(thread).or_default().push(Piece { file: file.to_owned(), content });
    }

    fn find(&mut self, place: &str, version: Option<u64>, broken: Broken) {
        self.findings.push(Finding { place: place.to_owned(), version, broken });
    }
}

/// A page of a chain, its versions one after the other.
fn page(bytes: &[u8]) -> Result<(ThreadId, Stretch), (Option<u64>, Broken)> {
    let limits = Limits { bytes_max: usize::try_from(PLAIN_BYTES_MAX).unwrap_or(usize::MAX), depth_max: DEPTH_CEILING };
    let of_all = |broken| (None, broken);
    let document = parse(bytes, &limits)
        .map_err(|error| of_all(Broken { code: error.code.as_str(), what: "it is not strict JSON" }))?;
    let entries = document.get("entries").and_then(Value::as_array);
    let entries = entries.ok_or(of_all(chain("it is not a page of a chain: it has no `entries`")))?;
    let mut items: Vec<Exported> = Vec::with_capacity(entries.len());
    for entry in entries {
        let next = items.last().map(|it| it.exhibit().version + 1);
        let item = Exported::read(entry).map_err(|broken| (next, broken))?;
        if next.is_some_and(|it| it != item.exhibit().version) {
            return Err((next, chain("a version is missing, there twice, or out of its place")));
        }
        items.push(item);
    }
    let thread = items.first().map(|it| it.exhibit().statement.thread.clone());
    let thread = thread.ok_or(of_all(chain("it has no versions")))?;
    let more = document.get("next_page_token").is_some_and(|it| !it.is_null());
    Ok((thread, Stretch::Page(items, more)))
}

/// Replaying.
impl Audited {
    fn replay(&mut self, keys: &PublicKeys) {
        for (thread, mut pieces) in std::mem::take(&mut self.pieces) {
            pieces.sort_by_key(Piece::ends);
            match replayed(&pieces, keys) {
                Ok(chain) => _ = self.chains.insert(thread, chain),
                Err(finding) => self.findings.push(finding),
            }
        }
    }

    /// What branches say of each other's threads, where both are here.
    fn hold_branches(&mut self) {
        let (mut findings, mut unseen) = (Vec::new(), Vec::new());
        for (thread, chain) in &self.chains {
            let mut hold = |other: &ThreadId, held: Option<Result<(), Broken>>| match held {
                Some(Ok(())) => {}
                Some(Err(broken)) => findings.push(Finding { place: thread.to_string(), version: None, broken }),
                None => unseen.push(format!("{other}, which {thread} is made of, is not here")),
            };
            if let Some(fork) = &chain.fork {
                hold(&fork.thread, self.chains.get(&fork.thread).map(|it| it.branch(chain)));
            }
            for (on, named) in chain.joined() {
                hold(&named.thread, self.chains.get(&named.thread).map(|it| it.was_joined(on, named)));
            }
        }
        self.findings.extend(findings);
        self.unseen.extend(unseen);
    }

    fn hold_receipts(&mut self, keys: &PublicKeys) {
        for (file, token) in std::mem::take(&mut self.receipts) {
            let unread = Broken { code: "receipt_malformed", what: "the text is not a receipt in its one spelling" };
            let Ok(claimed) = jws::read::<Receipt>(&token, Typ::Receipt) else {
                self.find(&file, None, unread);
                continue;
            };
            let thread = claimed.claims_unverified().sub.clone();
            // Where only one chain is here, a receipt that is not of it says so itself.
            let only = self.chains.values().next().filter(|_| self.chains.len() == 1);
            match self.chains.get(&thread).or(only).map(|it| it.receipt(&token, keys)) {
                None => self.doubts.push(format!("{file}: the chain of its thread is not here, or does not hold")),
                Some(Err(broken)) => self.find(&file, None, broken),
                Some(Ok(approved)) if !approved.certain => self.doubts.push(format!(
                    "{file}: its key is retired, so only the gateway can say whether it issued this receipt before"
                )),
                Some(Ok(_)) => *self.approvals.entry(thread).or_default() += 1,
            }
        }
    }
}

fn replayed(pieces: &[Piece], keys: &PublicKeys) -> Result<Chain, Finding> {
    let mut chain_so_far: Option<Chain> = None;
    for piece in pieces {
        for it in piece.exhibits() {
            let found = |broken| Finding { place: piece.file.clone(), version: Some(it.version), broken };
            match (&mut chain_so_far, &piece.content) {
                (None, Stretch::Page(..)) if it.version > 0 => {
                    return Err(found(chain("the versions before it are not here")));
                }
                (None, _) => chain_so_far = Some(Chain::begin(&it, keys).map_err(found)?),
                (Some(chain), _) if it.version < chain.next_version() => chain.again(&it, keys).map_err(found)?,
                (Some(chain), _) => chain.follow(&it, keys).map_err(found)?,
            }
        }
    }
    let last = pieces.iter().max_by_key(|it| it.ends().1);
    if let Some(Piece { file, content: Stretch::Page(_, true) }) = last {
        let broken = chain("there are more pages");
        return Err(Finding { place: file.clone(), version: None, broken });
    }
    chain_so_far.ok_or_else(|| Finding { place: String::new(), version: None, broken: chain("it has no versions") })
}

/// Telling.
impl Audited {
    fn text(&self) -> String {
        let mut text = String::new();
        for (thread, chain) in &self.chains {
            let (from, to, opened) = (chain.first(), chain.next_version() - 1, chain.opened());
            let (approved, receipts) = (chain.approved(), self.approvals.get(thread).copied().unwrap_or_default());
            let line = format!(
                "{thread} of {}: versions {from} to {to} linked and signed, {opened} changes seen whole",
                chain.issuer
            );
            writeln!(text, "{line}, {approved} approved, {receipts} by receipts that are here").expect("text grows");
        }
        for it in &self.unseen {
            writeln!(text, "not seen: {it}").expect("text grows");
        }
        for it in &self.passed_over {
            writeln!(text, "passed over: {it}").expect("text grows");
        }
        for it in &self.doubts {
            writeln!(text, "could not tell: {it}").expect("text grows");
        }
        for Finding { place, version, broken } in &self.findings {
            let version = version.map(|it| format!(" version {it}:")).unwrap_or_default();
            writeln!(text, "{place}:{version} {broken}").expect("text grows");
        }
        let verdict = match (self.findings.len(), self.doubts.is_empty()) {
            (0, true) => "nothing is wrong with what is here; whether there is more, it cannot say".to_owned(),
            (0, false) => "could not tell".to_owned(),
            (1, _) => "1 finding".to_owned(),
            (many, _) => format!("{many} findings"),
        };
        text + &verdict
    }

    fn told(&self) -> Value {
        let thread = |(thread, chain): (&ThreadId, &Chain)| {
            json!({
                "thread": thread, "issuer": chain.issuer, "from": chain.first(), "to": chain.next_version() - 1,
                "opened": chain.opened(), "approved": chain.approved(),
                "receipts": self.approvals.get(thread).copied().unwrap_or_default(),
            })
        };
        let finding = |it: &Finding| json!({"place": it.place, "version": it.version, "code": it.broken.code, "detail": it.broken.what});
        json!({
            "sound": self.findings.is_empty() && self.doubts.is_empty(),
            "threads": self.chains.iter().map(thread).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "could_not_tell": self.doubts, "not_seen": self.unseen, "passed_over": self.passed_over,
        })
    }
}
