//! The headers of the protocol, on their way to a server and back.

use countersign_domain::primitives::secret::Secret;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use crate::mirrored::{self, MirroredArgument};

/// The header with the id of a session.
pub const SESSION: &str = "mcp-session-id";

/// The header with the accepted content types. It may occur several times.
const ACCEPT: &str = "accept";

/// The header with the version of the protocol.
const VERSION: &str = "mcp-protocol-version";

/// The header with the method of the message.
const METHOD: &str = "mcp-method";

/// The header with the name of the tool, prompt or resource.
const NAME: &str = "mcp-name";

/// The headers that are forwarded. All other headers are those of the gateway itself, such as its token.
const FORWARDED: [&str; 5] = [ACCEPT, VERSION, METHOD, NAME, "last-event-id"];

/// The first version of the protocol without sessions.
const WITHOUT_SESSIONS: &str = "2026";

/// Separates the server's session id from the mark of the caller.
const SEPARATOR: char = '~';

/// The end of a session's id if the client can show links.
const LINKS: &str = "~links";

/// The headers of a request.
pub struct RequestHeaders {
    forwarded: Vec<(&'static str, String)>,
    /// The server's id of the session.
    pub session: Option<String>,
    /// The arguments of a call, as the client mirrored them into headers.
    arguments: Vec<(String, String)>,
    /// Whether the client of the session can show links. It says so when the session begins.
    pub session_links: bool,
}

/// Why the headers of a request are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadersRefused {
    /// This header occurs twice, or has other characters than visible ASCII.
    Malformed(&'static str),
    /// The session is not one of this caller.
    OtherSession,
}

impl RequestHeaders {
    /// Reads the headers of a request. `all` has their names in lower case, and `mark` returns the mark of a session.
    pub fn read(
        all: &[(String, Option<String>)],
        mark: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, HeadersRefused> {
        let values = |name: &str| all.iter().filter(|it| it.0 == name).map(|it| it.1.clone()).collect::<Vec<_>>();
        let one = |name: &'static str| {
            let mut values = values(name).into_iter();
            let Some(value) = values.next() else { return Ok(None) };
            let text = value.filter(|_| values.next().is_none() || name == ACCEPT);
            text.map(Some).ok_or(HeadersRefused::Malformed(name))
        };
        let mut forwarded = Vec::new();
        for name in FORWARDED {
            forwarded.extend(one(name)?.map(|it| (name, it)));
        }
        let bound = one(SESSION)?;
        let session_links = bound.as_ref().is_some_and(|it| it.ends_with(LINKS));
        let session = match bound.as_ref().map(|it| it.strip_suffix(LINKS).unwrap_or(it)) {
            None => None,
            Some(bound) => Some(unbound(bound, mark).ok_or(HeadersRefused::OtherSession)?),
        };
        let mut arguments = Vec::new();
        for (name, value) in all.iter().filter(|it| it.0.starts_with(mirrored::PREFIX)) {
            let value = value.clone().filter(|_| values(name).len() == 1);
            arguments.push((name.clone(), value.ok_or(HeadersRefused::Malformed(mirrored::PREFIX))?));
        }
        Ok(Self { forwarded, session, session_links, arguments })
    }

    /// Returns whether the headers name the method and the name of the message. A server can act on its headers, so
    /// other ones could make a call of another message.
    pub fn match_message(&self, method: Option<&str>, name: Option<&str>) -> bool {
        let is_method = self.get(METHOD).is_none_or(|it| Some(it) == method);
        is_method && self.get(NAME).is_none_or(|it| mirrored::decoded(it).as_deref() == name)
    }

    /// Returns whether the headers of a call have its arguments. The headers of a tool without a known schema do not, and the
    /// client lists the tools then.
    pub fn match_arguments(&self, tool: &[MirroredArgument], arguments: &Map<String, Value>) -> bool {
        let is_mirrored =
            |(header, value): &(String, String)| tool.iter().any(|it| it.header == *header && it.is(value, arguments));
        self.arguments.iter().all(is_mirrored)
    }

    /// Sets the headers with the approved arguments.
    pub fn mirror(&mut self, tool: &[MirroredArgument], arguments: &Map<String, Value>) {
        let has_headers = self.get(VERSION).is_some_and(|it| it >= WITHOUT_SESSIONS);
        let mirrored = tool.iter().filter(|_| has_headers);
        self.arguments = mirrored.filter_map(|it| Some((it.header.clone(), it.value(arguments)?))).collect();
    }

    /// Names a call instead of the message that they came with.
    pub fn name_call(&mut self, tool: &str) {
        for (name, value) in &mut self.forwarded {
            match *name {
                METHOD => "tools/call".clone_into(value),
                NAME => *value = mirrored::encoded(tool),
                _ => {}
            }
        }
    }

    /// Returns whether the end of the connection cancels a request. Versions with sessions have a message for it.
    pub fn disconnect_cancels(&self) -> bool {
        self.session.is_none() && self.get(VERSION).is_some_and(|it| it >= WITHOUT_SESSIONS)
    }

    /// Returns the headers of the request to the server.
    pub fn to_server(&self, secret: Option<&Secret<String>>, has_body: bool) -> Vec<(String, Secret<String>)> {
        let pair = |name: &str, value: String| (name.to_owned(), Secret::new(value));
        // Without a message there is nothing that these headers could name.
        let names = |it: &&(&str, String)| has_body || ![METHOD, NAME].contains(&it.0);
        let mut headers: Vec<_> =
            self.forwarded.iter().filter(names).map(|(name, value)| pair(name, value.clone())).collect();
        headers.extend(self.arguments.iter().map(|(name, value)| pair(name, value.clone())));
        headers.extend(self.session.iter().map(|it| pair(SESSION, it.clone())));
        headers.extend(secret.map(|it| pair("authorization", format!("Bearer {}", it.expose()))));
        if has_body {
            headers.push(pair("content-type", "application/json".to_owned()));
        }
        headers
    }

    /// Returns the id of a session for its caller.
    pub fn bound(&self, session: &str, mark: &str) -> String {
        format!("{session}{SEPARATOR}{mark}{}", if self.session_links { LINKS } else { "" })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.forwarded.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }
}

/// Returns the server's id of a session of this caller. A caller must not act in the session of another one, which has
/// the same credentials at the server.
fn unbound(bound: &str, mark: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (session, marked) = bound.rsplit_once(SEPARATOR)?;
    let is_own = mark(session)?.as_bytes().ct_eq(marked.as_bytes());
    bool::from(is_own).then(|| session.to_owned())
}
