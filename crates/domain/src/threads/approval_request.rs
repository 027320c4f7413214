//! Approval requests: one tool call of an agent instance, on a thread of its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tool_call::Tool;
use super::usage::InvalidUsage;
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::keys::ThreadSecret;
use crate::primitives::id::{PrincipalId, ThreadId, ToolName};
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::time::Timestamp;

/// The size limit of a context. It is part of the thread's row, which is written again with each step.
pub const CONTEXT_BYTES_MAX: usize = 16 * 1024;

/// The size limit of an outcome's note.
pub const NOTE_CHARS_MAX: usize = 2_000;

/// The longest time that an instance may ask to wait.
const TIMEOUT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The length limit of a timeout, which is stored as it was sent.
const TIMEOUT_BYTES_MAX: usize = 32;

/// The prefix of the names of threads with an approval request. Hosts cannot use it.
const PREFIX: &str = "request:";

/// Checks that a name is reserved for threads with an approval request.
pub fn is_name(thread: &ThreadId) -> bool {
    thread.as_str().starts_with(PREFIX)
}

/// Returns the id of an approval request: a UUID that only the gateway can compute. The same key of the same instance
/// always has the same id, so a repeated request finds the first one.
pub fn id_of(secret: &ThreadSecret, instance: &PrincipalId, key: &str) -> String {
    let digest = Digest::keyed(secret, Tag::Submission, canonical(&json!([instance, key])).as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.bytes()[..16]);
    // Version 8, which RFC 9562 reserves for forms of one's own, and its variant.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Returns the id of the request that follows another one of equal calls. Equal calls at the same moment make the same
/// request. A key has no spaces, so no other request has this id.
pub fn id_after(secret: &ThreadSecret, instance: &PrincipalId, call: &Digest, previous: Option<&str>) -> String {
    id_of(secret, instance, &format!("{call} after {}", previous.unwrap_or_default()))
}

/// Returns the thread of an approval request, or `None` if the id has another form.
pub fn thread_of(id: &str) -> Option<ThreadId> {
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, b): (usize, u8)| if dash(at) { b == b'-' } else { matches!(b, b'0'..=b'9' | b'a'..=b'f') };
    let is_id = id.len() == 36 && id.bytes().enumerate().all(fits);
    is_id.then(|| ThreadId::try_from(format!("{PREFIX}{id}")).ok()).flatten()
}

/// Returns the id of the approval request of a thread.
pub fn id_in(thread: &ThreadId) -> Option<&str> {
    thread.as_str().strip_prefix(PREFIX)
}

/// Why an approval request cannot be created, used or reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApprovalRequestError {
    #[error("This key was used for another approval request. Use a new `Idempotency-Key` for each call.")]
    KeyReused,
    #[error("The approval request is decided already, so it cannot be cancelled.")]
    AlreadyDecided,
    #[error("The approval request is not approved. Run the call only after an approval.")]
    NotApproved,
    #[error("The approval has expired. Ask again with a new `Idempotency-Key`.")]
    Expired,
    #[error("The approval was used already. Ask again with a new `Idempotency-Key`.")]
    AlreadyConsumed,
    #[error("The approval was not used, so there is no outcome to report. Consume it before the call.")]
    NotConsumed,
    #[error("Another outcome of this call is recorded. The first report counts.")]
    OutcomeDiffers,
    #[error(
        "The receiver did not answer the signed verification with its challenge, so no instance was created. It must serve at `url` with this secret and registration."
    )]
    ReceiverNotVerified,
}

impl ApprovalRequestError {
    /// Returns the code of the Agent Approval Protocol.
    pub const fn code(self) -> &'static str {
        match self {
            Self::KeyReused => "idempotency_conflict",
            Self::AlreadyDecided => "already_terminal",
            Self::NotApproved => "not_approved",
            Self::Expired => "approval_expired",
            Self::AlreadyConsumed => "already_consumed",
            Self::NotConsumed => "not_consumed",
            Self::OutcomeDiffers => "outcome_conflict",
            Self::ReceiverNotVerified => "webhook_verification_failed",
        }
    }
}

named_json_enum! {
    /// The result of a call, as the instance reports it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum CallStatus {
        Succeeded = "succeeded",
        /// The call failed. It may have had a part of its effect.
        Failed = "failed",
    }
}

/// The reported outcome of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallOutcome {
    pub status: CallStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

/// The part of an approval request that its thread stores. The tool call belongs to the transition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The token that sent it. Only this token sees it and uses it.
    pub instance: PrincipalId,
    /// The keyed digest of everything that was sent, by which a repeated request is recognized.
    pub submission: Digest,
    /// The server of the tool, if the instance named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The time to wait for a decision, as it was sent.
    pub timeout: String,
    /// Until then it can be decided.
    pub deadline: Timestamp,
    /// The instance's own data. It is returned unchanged and has no other use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
    /// The agent's reason, if the policy denied the call. Otherwise the transition has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Whether the server has changed the definition of the tool, as the instance reports it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tool_has_changed: bool,
    /// How equal calls find this request. Without it, they ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<CallSharing>,
    /// The outcome, once it is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
}

/// How equal calls of an instance find a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSharing {
    /// The keyed digest that equal calls have in common.
    pub call: Digest,
    /// The id that the key of the first call names. By it, that call recognizes its own request.
    pub own_id: String,
}

/// The content of a request, as an instance sends it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The tool's name at its server.
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub arguments: Map<String, Value>,
    pub timeout: String,
    /// The agent's reason for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
    /// Whether the server has changed the definition of the tool since the instance saw it first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tool_has_changed: bool,
}

impl Submission {
    /// Returns the keyed digest of everything that was sent.
    pub fn digest(&self, secret: &ThreadSecret) -> Digest {
        let value = serde_json::to_value(self).expect("a submission is a plain struct with text keys");
        Digest::keyed(secret, Tag::Submission, canonical(&value).as_bytes())
    }

    /// Returns the keyed digest that equal calls of an instance have in common. The context can name their session.
    pub fn equal_call(&self, secret: &ThreadSecret, instance: &PrincipalId) -> Digest {
        Digest::keyed(secret, Tag::Submission, canonical(&json!(["equal call", instance, self])).as_bytes())
    }

    /// Returns the tool call that the policy judges. A tool of a server is called `server:tool`.
    pub fn tool_call(&self) -> Result<Tool, InvalidUsage> {
        let name = match &self.server {
            // Otherwise two servers could have the same tool: `a:b` with `c`, and `a` with `b:c`.
            Some(server) if server.contains(':') => Err("`server` must not contain a colon"),
            Some(server) => Ok(format!("{server}:{}", self.tool)),
            None => Ok(self.tool.clone()),
        };
        let name = name.and_then(|it| {
            ToolName::try_from(it)
                .map_err(|_| "`tool`, with its `server`, must be 1 to 128 characters from A-Z a-z 0-9 . _ : -")
        });
        let name = name.map_err(|detail| wrong("tool", detail))?;
        Tool::new(name, self.arguments.clone())
    }

    /// Returns the time to wait, and checks the context.
    pub fn wait(&self) -> Result<Duration, InvalidUsage> {
        let context = self.context.as_ref().map_or(0, |it| canonical(&Value::Object(it.clone())).len());
        if context > CONTEXT_BYTES_MAX {
            return Err(wrong("context", "`context` is longer than 16 KiB of canonical JSON; shorten it"));
        }
        read_timeout(&self.timeout).ok_or_else(|| {
            wrong(
                "timeout",
                "`timeout` must be a whole number with a unit, such as \"90s\", \"10m\" or \"24h\", up to 30 days",
            )
        })
    }
}

/// Reads whole numbers with their units: `90s`, `10m`, `1h30m`, `7d`.
pub fn read_timeout(text: &str) -> Option<Duration> {
    if text.len() > TIMEOUT_BYTES_MAX {
        return None;
    }
    let (mut total, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[digits + 1..];
    }
    Some(Duration::from_secs(total)).filter(|it| !it.is_zero() && *it <= TIMEOUT_MAX)
}

fn wrong(member: &str, detail: &'static str) -> InvalidUsage {
    InvalidUsage { pointer: Pointer::root().child(member), detail }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn submission(tool: &str, server: Option<&str>) -> Submission {
        let sent = json!({"tool": tool, "server": server, "arguments": {"amount": 5}, "timeout": "10m"});
        serde_json::from_value(sent).unwrap()
    }

    #[test]
    fn timeout_is_whole_numbers_with_units() {
        for (text, secs) in [("90s", 90), ("10m", 600), ("1h30m", 5_400), ("30d", 2_592_000)] {
            assert_eq!(read_timeout(text), Some(Duration::from_secs(secs)), "{text}");
        }
        for text in [
            "",
            "0s",
            "10",
            "m",
            "1.5h",
            "-1s",
            "+1s",
            "10 m",
            "31d",
            "1é",
            "99999999999999999999s",
            "1h ",
            "0000000000000000000000000000000010m",
        ] {
            assert_eq!(read_timeout(text), None, "{text}");
        }
    }

    #[test]
    fn tool_of_a_server_has_one_name() {
        let name = |tool, server| submission(tool, server).tool_call().map(|it| it.name.to_string());
        assert_eq!(name("issue_refund", None).unwrap(), "issue_refund");
        assert_eq!(name("issue_refund", Some("crm")).unwrap(), "crm:issue_refund");
        for (tool, server) in [("c", Some("a:b")), ("", None), ("a b", None), ("a", Some("")), ("ä", None)] {
            assert!(name(tool, server).is_err(), "{server:?} {tool}");
        }
    }

    #[test]
    fn id_is_a_uuid_and_depends_on_the_instance_and_its_key() {
        let secret = ThreadSecret::from_bytes(&[7; 32]);
        let id = |instance: &str, key: &str| id_of(&secret, &PrincipalId::try_from(instance).unwrap(), key);
        let first = id("a", "b");
        assert_eq!(first, id("a", "b"));
        assert!(first.as_bytes()[14] == b'8' && thread_of(&first).is_some_and(|it| is_name(&it)));
        assert_eq!(thread_of(&first).as_ref().and_then(id_in), Some(first.as_str()));
        for other in [
            id("a", "c"),
            id("b", "b"),
            id("ab", ""),
            id_of(&ThreadSecret::from_bytes(&[8; 32]), &PrincipalId::try_from("a").unwrap(), "b"),
        ] {
            assert_ne!(other, first);
        }
        for bad in ["", "x", &first.to_uppercase(), &first[1..], &format!("{first}0"), &first.replace('-', "0")] {
            assert_eq!(thread_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn digest_covers_every_member() {
        let secret = ThreadSecret::from_bytes(&[7; 32]);
        let first = submission("a", None);
        let others = [
            Submission { tool: "b".to_owned(), ..first.clone() },
            Submission { server: Some("a".to_owned()), ..first.clone() },
            Submission { arguments: Map::new(), ..first.clone() },
            Submission { timeout: "11m".to_owned(), ..first.clone() },
            Submission { agent_reasoning: Some("x".to_owned()), ..first.clone() },
            Submission { context: Some(Map::new()), ..first.clone() },
            Submission { tool_has_changed: true, ..first.clone() },
        ];
        for other in others {
            assert_ne!(other.digest(&secret), first.digest(&secret), "{other:?}");
        }
        assert_eq!(first.clone().digest(&secret), first.digest(&secret));
    }

    #[test]
    fn equal_calls_of_an_instance_share_a_digest() {
        let secret = ThreadSecret::from_bytes(&[7; 32]);
        let of = |call: &Submission, by: &str| call.equal_call(&secret, &PrincipalId::try_from(by).unwrap());
        let call = submission("a", None);
        assert_eq!(of(&call, "i"), of(&call.clone(), "i"));
        assert_ne!(of(&call, "i"), of(&call, "j"));
        assert_ne!(of(&call, "i"), call.digest(&secret));
        let elsewhere = Submission { context: json!({"cwd": "/"}).as_object().cloned(), ..call.clone() };
        assert_ne!(of(&call, "i"), of(&elsewhere, "i"));
    }

    #[test]
    fn long_context_is_refused() {
        let with = |bytes: usize| Submission {
            context: json!({"a": "x".repeat(bytes)}).as_object().cloned(),
            ..submission("a", None)
        };
        assert!(with(CONTEXT_BYTES_MAX - 8).wait().is_ok());
        assert!(with(CONTEXT_BYTES_MAX - 7).wait().is_err());
    }
}
