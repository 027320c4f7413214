//! Merges the layers of the configuration. Each value has a source, and its type is the type in the default file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use countersign_domain::primitives::secret::Secret;
use toml::de::{DeTable, DeValue};

use super::{ConfigCode, ConfigError, ConfigOrigin, DEFAULTS, Flags};

/// The prefix of every environment variable that this program reads.
const PREFIX: &str = "COUNTERSIGN_";

/// The path of the configuration file. It is the only variable that is not a key.
pub(super) const CONFIG_VARIABLE: &str = "COUNTERSIGN_CONFIG";

/// A configuration is a page of text, so a larger file was named by mistake.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The prefix of the keys of MCP servers: `mcp.upstreams.NAME.MEMBER`.
pub(super) const UPSTREAMS: &str = "mcp.upstreams.";

/// The members of the table of an MCP server.
const UPSTREAM_MEMBERS: [&str; 3] = ["url", "secret", "secret_file"];

/// Values by key. Reading a value removes it, so that a test can check that every key is read.
pub(super) struct ConfigLayers {
    values: BTreeMap<String, ConfigValue>,
    origins: BTreeMap<String, ConfigOrigin>,
}

struct ConfigValue {
    value: ConfigScalar,
    origin: ConfigOrigin,
}

enum ConfigScalar {
    Text(Secret<String>),
    Number(u64),
    List(Vec<String>),
    Flag(bool),
}

impl ConfigScalar {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string in quotes",
            Self::Number(_) => "a whole number",
            Self::List(_) => "a list of strings",
            Self::Flag(_) => "true or false",
        }
    }

    fn of(value: &DeValue<'_>) -> Option<Self> {
        match value {
            DeValue::String(text) => Some(Self::Text(Secret::new(text.to_string()))),
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok().map(Self::Number),
            DeValue::Boolean(flag) => Some(Self::Flag(*flag)),
            DeValue::Array(items) => {
                items.iter().map(|it| it.get_ref().as_str().map(str::to_owned)).collect::<Option<_>>().map(Self::List)
            }
            _ => None,
        }
    }

    /// Parses a text as the type of `self`.
    fn like(&self, text: &str) -> Option<Self> {
        match self {
            Self::Text(_) => Some(Self::Text(Secret::new(text.to_owned()))),
            Self::Number(_) => text.trim().parse().ok().map(Self::Number),
            Self::List(_) => {
                // An empty variable is an empty list, and not a list of one empty text.
                let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
                Some(Self::List(items.map(str::to_owned).collect()))
            }
            Self::Flag(_) => text.trim().parse().ok().map(Self::Flag),
        }
    }
}

/// Returns the variables with this program's prefix.
pub(super) fn ours(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, Secret<String>>, ConfigError> {
    let mut ours = BTreeMap::new();
    for (name, value) in environment {
        // A name that is not UTF-8 cannot be a key.
        let Some(name) = name.to_str().filter(|it| it.starts_with(PREFIX)) else { continue };
        // Kubernetes sets these in every pod, so refusing them would stop the gateway.
        if links_to_a_service(name, value.to_str().unwrap_or_default()) {
            continue;
        }
        let Ok(value) = value.into_string() else {
            let problem = "its value is not UTF-8";
            return Err(error(ConfigCode::BadValue, name, ConfigOrigin::Variable(name.to_owned()), problem));
        };
        ours.insert(name.to_owned(), Secret::new(value));
    }
    Ok(ours)
}

/// Returns true if Kubernetes set the variable. It sets such variables in every pod that runs in the same namespace as
/// a service called `countersign` or `countersign-…`. Every other unknown variable with the prefix is refused as a
/// typing mistake.
fn links_to_a_service(name: &str, value: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    if name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
        return true;
    }
    // `COUNTERSIGN_PORT=tcp://10.0.0.1:80` is such a variable, and `COUNTERSIGN_PORT=80` is a mistake.
    let address = value.split_once("://").map(|it| it.0.to_ascii_uppercase());
    if name.ends_with("_PORT") && address.is_some_and(|it| PROTOCOLS.contains(&it.as_str())) {
        return true;
    }
    let mut parts = name.rsplit_once("_PORT_").map_or("", |it| it.1).split('_');
    let number = parts.next().is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()));
    let protocol = parts.next().is_some_and(|it| PROTOCOLS.contains(&it));
    number && protocol && matches!((parts.next(), parts.next()), (None | Some("PROTO" | "PORT" | "ADDR"), None))
}

impl ConfigLayers {
    pub(super) fn defaults() -> Self {
        let table = DeTable::parse(DEFAULTS).expect("the compiled-in file is read by a test");
        let mut leaves = Vec::new();
        flatten("", table.get_ref(), &mut leaves);
        let values = leaves.into_iter().map(|leaf| {
            let value = ConfigScalar::of(leaf.value)
                .expect("the compiled-in file has texts, whole numbers, flags and lists of texts");
            (leaf.key, ConfigValue { value, origin: ConfigOrigin::Default })
        });
        Self { values: values.collect(), origins: BTreeMap::new() }
    }

    pub(super) fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let at = |line| ConfigOrigin::File { path: path.to_owned(), line };
        // The size is checked first, so that a large file is never in memory.
        let sensible = fs::metadata(path).map(|it| it.len() <= FILE_BYTES_MAX);
        let text = match sensible {
            Ok(true) => fs::read_to_string(path).map_err(|it| it.to_string()),
            Ok(false) => Err(format!("the file is longer than {FILE_BYTES_MAX} bytes")),
            Err(refused) => Err(refused.to_string()),
        };
        let text = text.map_err(|problem| error(ConfigCode::Unreadable, "--config", at(1), &problem))?;
        let line_of = |offset: usize| text.as_bytes().iter().take(offset).filter(|it| **it == b'\n').count() + 1;
        // The parser's own message quotes the line, which can contain a password.
        let table = DeTable::parse(&text).map_err(|refused| {
            let line = refused.span().map_or(1, |it| line_of(it.start));
            error(ConfigCode::Syntax, "TOML", at(line), refused.message())
        })?;
        let mut leaves = Vec::new();
        flatten("", table.get_ref(), &mut leaves);
        for leaf in leaves {
            let origin = at(line_of(leaf.offset));
            self.admit_upstream(&leaf.key);
            let known = self.known(ConfigCode::UnknownKey, &leaf.key, &leaf.key, &origin)?;
            // Types are compared before values, so that the error names the expected type.
            let value = ConfigScalar::of(leaf.value).filter(|it| it.kind() == known.value.kind());
            let value = value.ok_or_else(|| wrong_type(&leaf.key, &origin, known))?;
            *known = ConfigValue { value, origin };
        }
        Ok(())
    }

    /// Adds the keys of an MCP server that the file names. Only these tables have names of the operator's choice.
    fn admit_upstream(&mut self, key: &str) {
        let Some((name, _)) = key.strip_prefix(UPSTREAMS).and_then(|it| it.rsplit_once('.')) else { return };
        for member in UPSTREAM_MEMBERS {
            let value = ConfigScalar::Text(Secret::new(String::new()));
            let unset = ConfigValue { value, origin: ConfigOrigin::Default };
            self.values.entry(format!("{}{name}.{member}", UPSTREAMS)).or_insert(unset);
        }
    }

    /// Returns the names of the tables whose keys have this prefix.
    pub(super) fn tables_of(&self, prefix: &str) -> BTreeSet<String> {
        let names = self.values.keys().filter_map(|it| it.strip_prefix(prefix)?.rsplit_once('.'));
        names.map(|(name, _)| name.to_owned()).collect()
    }

    pub(super) fn variables(&mut self, variables: BTreeMap<String, Secret<String>>) -> Result<(), ConfigError> {
        // The name of a variable is derived from each key. The reverse would be ambiguous, because keys contain `_`.
        let keys: BTreeMap<String, String> = self.values.keys().map(|it| (variable(it), it.clone())).collect();
        for (name, text) in variables {
            // The path was used before this layer, and it is not a key.
            if name == CONFIG_VARIABLE {
                continue;
            }
            let origin = ConfigOrigin::Variable(name.clone());
            let key = keys.get(&name).map_or("", String::as_str);
            let known = self.known(ConfigCode::UnknownVariable, key, &name, &origin)?;
            let value = known.value.like(text.expose()).ok_or_else(|| wrong_type(key, &origin, known))?;
            *known = ConfigValue { value, origin };
        }
        Ok(())
    }

    /// Applies the command line's layer.
    pub(super) fn flags(&mut self, flags: &Flags) -> Result<(), ConfigError> {
        let mut set = |key: &str, flag, text: &str| {
            let value = ConfigScalar::Text(Secret::new(text.to_owned()));
            self.values.insert(key.to_owned(), ConfigValue { value, origin: ConfigOrigin::Flag(flag) });
        };
        if let Some(listen) = flags.listen {
            set("listen", "--listen", &listen.to_string());
        }
        if let Some(data) = &flags.data {
            let problem = "the path is not UTF-8: rename the directory";
            let refuse = || error(ConfigCode::BadValue, "data", ConfigOrigin::Flag("--data"), problem);
            set("data", "--data", data.to_str().ok_or_else(refuse)?);
        }
        if let Some(database) = &flags.database {
            set("database", "--database", database.expose());
        }
        Ok(())
    }

    /// Reads a text. The error names the expected format and does not repeat the text, because some texts are secrets.
    pub(super) fn text<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        match self.take(key) {
            ConfigScalar::Text(text) => read(text.expose()).ok_or_else(|| self.bad_value(key, expected)),
            _ => Err(self.bad_value(key, expected)),
        }
    }

    /// Reads a text. An empty text means not set.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        self.text(key, expected, |text| if text.is_empty() { Some(None) } else { read(text).map(Some) })
    }

    pub(super) fn list<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, ConfigError> {
        match self.take(key) {
            ConfigScalar::List(items) => {
                items.iter().map(|it| read(it).ok_or_else(|| self.bad_value(key, expected))).collect()
            }
            _ => Err(self.bad_value(key, expected)),
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, ConfigError> {
        match self.take(key) {
            ConfigScalar::Flag(flag) => Ok(flag),
            _ => Err(self.bad_value(key, "true or false")),
        }
    }

    /// Reads a number within bounds.
    pub(super) fn number<T>(&mut self, key: &str, bounds: RangeInclusive<T>) -> Result<T, ConfigError>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let number = match self.take(key) {
            ConfigScalar::Number(number) => T::try_from(number).ok().filter(|it| bounds.contains(it)),
            _ => None,
        };
        // The error names the bounds and not the value, which could be a secret in the wrong key.
        number.ok_or_else(|| {
            let expected = format!("a whole number from {} to {}", bounds.start(), bounds.end());
            self.bad_value(key, &expected)
        })
    }

    /// Reads a number of seconds within bounds.
    pub(super) fn secs(&mut self, key: &str, bounds: RangeInclusive<u64>) -> Result<Duration, ConfigError> {
        self.number(key, bounds).map(Duration::from_secs)
    }

    /// Returns the source of a key's value.
    pub(super) fn origin(&self, key: &str) -> ConfigOrigin {
        // A key that was read is no longer among the values, so its origin is looked up in both places.
        let unread = self.values.get(key).map(|it| &it.origin);
        unread.or_else(|| self.origins.get(key)).cloned().unwrap_or(ConfigOrigin::Default)
    }

    /// Returns an error about the value of this key.
    pub(super) fn refuse(&self, code: ConfigCode, key: &str, problem: &str) -> ConfigError {
        error(code, key, self.origin(key), problem)
    }

    #[cfg(test)]
    pub(super) fn unread(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    fn take(&mut self, key: &str) -> ConfigScalar {
        let setting = self.values.remove(key).expect("every key that is read is in the compiled-in file");
        // The origin stays, because later checks name it in their errors.
        self.origins.insert(key.to_owned(), setting.origin);
        setting.value
    }

    fn bad_value(&self, key: &str, expected: &str) -> ConfigError {
        self.refuse(ConfigCode::BadValue, key, &format!("it must be {expected}"))
    }

    fn known(
        &mut self,
        code: ConfigCode,
        key: &str,
        written: &str,
        origin: &ConfigOrigin,
    ) -> Result<&mut ConfigValue, ConfigError> {
        let problem = "unknown key: remove it, or look up the correct name in config.default.toml";
        self.values.get_mut(key).ok_or_else(|| error(code, written, origin.clone(), problem))
    }
}

struct ConfigLeaf<'a> {
    key: String,
    value: &'a DeValue<'a>,
    offset: usize,
}

/// Flattens tables to dotted keys. Except for MCP servers, only two levels exist. Deeper tables become unknown keys,
/// which are refused.
fn flatten<'a>(prefix: &str, table: &'a DeTable<'a>, leaves: &mut Vec<ConfigLeaf<'a>>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) if UPSTREAMS.starts_with(prefix) && !inner.is_empty() => {
                flatten(&format!("{key}."), inner, leaves)
            }
            // An empty table that the default file has sets nothing.
            DeValue::Table(inner) if inner.is_empty() && DEFAULTS.contains(&format!("\n[{key}]\n")) => (),
            value => leaves.push(ConfigLeaf { key, value, offset: name.span().start }),
        }
    }
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

fn wrong_type(key: &str, origin: &ConfigOrigin, known: &ConfigValue) -> ConfigError {
    error(ConfigCode::WrongType, key, origin.clone(), &format!("it must be {}", known.value.kind()))
}

fn error(code: ConfigCode, key: &str, origin: ConfigOrigin, problem: &str) -> ConfigError {
    ConfigError { code, key: key.to_owned(), origin, problem: problem.to_owned() }
}
