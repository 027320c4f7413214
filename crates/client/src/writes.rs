//! A writer's calls: `verify` before a write, `confirm` or `abort` after it.

use std::collections::BTreeMap;

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::PublicKeys;
use countersign_domain::primitives::id::{ThreadId, WriteId};
use countersign_domain::primitives::time::Timestamp;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, now};
use crate::error::ClientError;
use crate::exchange::{GatewayRequest, Patience};
use crate::mismatch::{AnswerMismatch, check_write, claims_of, must, receipt_id};

/// The write for which a writer asks. Take thread and transition from your own job, never from an agent.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    pub thread: ThreadId,
    pub transition: Digest,
    /// The receipt, if the writer has one.
    pub receipt: Option<String>,
    /// Store it with the job before the call. The same id gets the same answer while its lease is valid.
    pub write_id: WriteId,
    /// Expected values of the view.
    pub expect: BTreeMap<Pointer, Value>,
}

/// A permission for one write. Write only values of `view`, before `lease_expires_at`, and store `fence`.
#[derive(Clone, Debug)]
pub struct WritePermission {
    pub write_id: WriteId,
    /// The id of the receipt that the gateway used.
    pub receipt: Option<String>,
    /// The fencing token. It is larger than that of every earlier write of the thread.
    pub fence: u64,
    pub lease_expires_at: Timestamp,
    pub view: Value,
    /// The signed answer.
    pub verification: String,
    pub enforced: bool,
    /// Whether this is the stored answer of an earlier call.
    pub replayed: bool,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WriteOutcome {
    pub write_id: WriteId,
    pub outcome: OutcomeName,
    /// Whether the policy does not allow the reported result. The write is recorded without it.
    #[serde(default)]
    pub result_refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeName {
    Confirmed,
    Aborted,
    /// The head had changed.
    Late,
    Failed,
}

/// The answer of `verify`.
#[derive(Deserialize)]
struct VerifyAnswer {
    allow: bool,
    write_id: WriteId,
    fence: u64,
    lease_expires_at: Timestamp,
    view: Value,
    verification: String,
    enforced: bool,
    replayed: bool,
}

impl Client {
    /// Returns the published keys. Store them with the writer, so that a later gateway cannot replace them.
    pub async fn keys(&self) -> Result<PublicKeys, ClientError> {
        let answer = self.exchange(&GatewayRequest::new(Method::GET, "/.well-known/jwks.json"), Patience::Long).await?;
        let document: Value = answer.read()?;
        PublicKeys::from_jwks(&document).map_err(|error| ClientError::UnexpectedAnswer(error.to_string()))
    }

    /// Asks for the permission for one write. Write only if this returns a value. With keys, the answer must be signed by
    /// one of them for exactly this write, so that no proxy can forge it. Without keys, TLS is the only proof.
    pub async fn verify(
        &self,
        write: &WriteRequest,
        keys: Option<&PublicKeys>,
    ) -> Result<WritePermission, ClientError> {
        let sent_receipt = write.receipt.as_deref().map(receipt_id).transpose()?;
        let body = json!({"thread": write.thread, "transition": write.transition, "receipt": write.receipt,
            "write_id": write.write_id, "expect": write.expect});
        let request = GatewayRequest::new(Method::POST, "/v1/verify").body(body);
        let answer: VerifyAnswer = self.exchange(&request, Patience::Short).await?.read()?;
        Ok(bound(answer, write, sent_receipt, keys)?)
    }

    /// Reports a completed write, with a patch of what was written. Repeats the report for a while.
    pub async fn confirm(&self, write_id: &WriteId, result: &Value) -> Result<WriteOutcome, ClientError> {
        self.end(write_id, "confirm", json!({"result": result})).await
    }

    /// Reports that nothing was written.
    pub async fn abort(&self, write_id: &WriteId, reason: &str) -> Result<WriteOutcome, ClientError> {
        self.end(write_id, "abort", json!({"reason": reason})).await
    }

    async fn end(&self, write_id: &WriteId, how: &str, body: Value) -> Result<WriteOutcome, ClientError> {
        let request = GatewayRequest::new(Method::POST, format!("/v1/writes/{write_id}/{how}")).body(body);
        let outcome: WriteOutcome = self.exchange(&request, Patience::Long).await?.read()?;
        must(outcome.write_id == *write_id, AnswerMismatch::Write)?;
        Ok(outcome)
    }
}

/// Returns the answer, if it is the one to this request and was signed for it.
fn bound(
    answer: VerifyAnswer,
    write: &WriteRequest,
    sent_receipt: Option<String>,
    keys: Option<&PublicKeys>,
) -> Result<WritePermission, AnswerMismatch> {
    must(answer.allow && answer.write_id == write.write_id, AnswerMismatch::Write)?;
    let claims = claims_of(&answer.verification, write.thread.as_str(), keys)?;
    check_write(&claims, &write.transition, write.write_id.as_str())?;
    let receipt = claims.receipt.map(|it| it.to_string());
    must(receipt.is_none() || receipt == sent_receipt, AnswerMismatch::Receipt)?;
    must(claims.fence == answer.fence, AnswerMismatch::Fence)?;
    // `exp` has whole seconds.
    must(claims.exp == answer.lease_expires_at.seconds(), AnswerMismatch::Lease)?;
    must(claims.enforced == answer.enforced, AnswerMismatch::Enforced)?;
    must(now() < answer.lease_expires_at, AnswerMismatch::Expired)?;
    let is_expected = |(pointer, value): (&Pointer, &Value)| {
        answer.view.pointer(pointer.as_str()).is_some_and(|it| canonical(it) == canonical(value))
    };
    must(write.expect.iter().all(is_expected), AnswerMismatch::Expectation)?;
    Ok(WritePermission {
        write_id: answer.write_id,
        receipt,
        fence: answer.fence,
        lease_expires_at: answer.lease_expires_at,
        view: answer.view,
        verification: answer.verification,
        enforced: answer.enforced,
        replayed: answer.replayed,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use countersign_domain::chain::jws::{self, TokenType};
    use countersign_domain::chain::receipt::Verification;
    use countersign_domain::keys::{KeyUse, Keys};

    use super::*;
    use crate::signed;

    struct WriteScenario {
        keys: Keys,
        write: WriteRequest,
        claims: Verification,
    }

    impl WriteScenario {
        fn new() -> Self {
            let keys = signed::keys(1);
            let digest = |text: &str| Digest::of_file(text.as_bytes());
            let write = WriteRequest {
                thread: "order-18".try_into().unwrap(),
                transition: digest("transition"),
                receipt: None,
                write_id: "job-1".to_owned().try_into().unwrap(),
                expect: BTreeMap::from([("/amount".try_into().unwrap(), json!(40))]),
            };
            let end = now().plus(Duration::from_secs(30));
            let claims = signed::claims("order-18", "job-1", end);
            Self { keys, write, claims }
        }

        /// The answer of a gateway that signed these claims.
        fn answer(&self, claims: &Verification) -> VerifyAnswer {
            VerifyAnswer {
                allow: true,
                write_id: self.write.write_id.clone(),
                fence: self.claims.fence,
                lease_expires_at: Timestamp::from_millis(self.claims.exp * 1000),
                view: json!({"amount": 40.0}),
                verification: jws::sign(self.keys.signing(KeyUse::Chain), TokenType::Verification, claims),
                enforced: true,
                replayed: false,
            }
        }

        fn code(&self, answer: VerifyAnswer) -> &'static str {
            let with_keys = bound(answer, &self.write, None, Some(self.keys.trusted()));
            with_keys.map_or_else(AnswerMismatch::code, |_| "bound")
        }
    }

    #[test]
    fn permission_is_that_of_exactly_this_write() {
        let it = WriteScenario::new();
        assert_eq!(it.code(it.answer(&it.claims)), "bound");
        for (code, spoil) in [
            ("thread_mismatch", (|it| it.sub = "order-19".try_into().unwrap()) as fn(&mut Verification)),
            ("digest_mismatch", |it| it.transition = it.policy),
            ("write_mismatch", |it| it.write_id = "job-2".to_owned().try_into().unwrap()),
            ("fence_mismatch", |it| it.fence = 8),
            ("lease_mismatch", |it| it.exp += 60),
            ("enforced_mismatch", |it| it.enforced = false),
            ("issuer_mismatch", |it| it.iss = "https://other.example".to_owned()),
            ("receipt_malformed", |it| it.fence = 0),
        ] {
            let mut claims = it.claims.clone();
            spoil(&mut claims);
            assert_eq!(it.code(it.answer(&claims)), code);
        }
        for (code, spoil) in [
            ("write_mismatch", (|it| it.allow = false) as fn(&mut VerifyAnswer)),
            ("write_mismatch", |it| it.write_id = "job-2".to_owned().try_into().unwrap()),
            ("expectation_failed", |it| it.view = json!({"amount": 4000})),
            ("expectation_failed", |it| it.view = json!({})),
            ("receipt_malformed", |it| it.verification.push('.')),
        ] {
            let mut answer = it.answer(&it.claims);
            spoil(&mut answer);
            assert_eq!(it.code(answer), code);
        }
    }

    #[test]
    fn answer_of_another_key_or_after_its_lease_is_refused() {
        let mut it = WriteScenario::new();
        let stranger = WriteScenario { keys: signed::keys(9), ..WriteScenario::new() };
        let forged = jws::sign(stranger.keys.signing(KeyUse::Chain), TokenType::Verification, &it.claims);
        assert_eq!(it.code(VerifyAnswer { verification: forged.clone(), ..it.answer(&it.claims) }), "unknown_key");
        // Another claim under a genuine signature.
        let genuine = it.answer(&it.claims).verification;
        let (signed, _) = forged.rsplit_once('.').unwrap();
        let header = genuine.split('.').next().unwrap();
        let payload = signed.split('.').nth(1).unwrap();
        let other = genuine.rsplit_once('.').unwrap().1.chars().rev().collect::<String>();
        let spoiled = format!("{header}.{payload}.{other}");
        let code = it.code(VerifyAnswer { verification: spoiled, ..it.answer(&it.claims) });
        assert!(matches!(code, "signature_invalid" | "receipt_malformed"), "{code}");
        (it.claims.iat, it.claims.exp) = (it.claims.iat - 60, it.claims.iat - 30);
        assert_eq!(it.code(it.answer(&it.claims)), "expired");
    }
}
