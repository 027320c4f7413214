//! People whom an OpenID provider vouches for: what its word means here, and which names it may give.

use std::collections::BTreeSet;

use super::account::PersonRole;
use crate::domain::primitives::id::GroupName;

/// What a provider says of a person, after everything about it was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OidcIdentity {
    pub issuer: String,
    /// The person, as the provider names them for ever.
    pub subject: String,
    /// What they are called there at the moment.
    pub name: Option<String>,
    /// The values that groups and roles are mapped from.
    pub values: BTreeSet<String>,
    /// The signed statement itself, as a hint for signing out there.
    pub hint: String,
}

/// What the values of a claim mean here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimMapping {
    /// Which value stands for which group.
    pub groups: Vec<(String, GroupName)>,
    /// Which value gives which role; the first that fits does.
    pub roles: Vec<(String, PersonRole)>,
    /// What becomes of people with none of these values.
    pub admit: AdmissionRule,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdmissionRule {
    /// Whoever has a value that is mapped.
    Mapped,
    /// Everybody whom the provider knows, without a group if need be.
    Anybody,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OidcMembership {
    pub role: PersonRole,
    /// Which groups they stand for.
    pub groups: BTreeSet<GroupName>,
}

impl ClaimMapping {
    /// What somebody with these values is here; nobody, if nothing is said of any of them.
    pub fn standing(&self, values: &BTreeSet<String>) -> Option<OidcMembership> {
        let groups: BTreeSet<GroupName> =
            self.groups.iter().filter(|it| values.contains(&it.0)).map(|it| it.1.clone()).collect();
        let role = self.roles.iter().find(|it| values.contains(&it.0)).map(|it| it.1);
        let known = role.is_some() || !groups.is_empty() || self.admit == AdmissionRule::Anybody;
        known.then(|| OidcMembership { role: role.unwrap_or(PersonRole::Reviewer), groups })
    }
}

/// Names are shown in lists.
const NAME_CHARS_MAX: usize = 64;

/// The name of a new account: small letters, digits and `. _ - @` of ASCII. Whoever may choose their own name at a
/// provider can then not choose one that only looks like somebody's here.
pub fn account_name(claimed: &str) -> Option<String> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-' | '@');
    let fits = (1..=NAME_CHARS_MAX).contains(&claimed.len()) && claimed.chars().all(plain);
    fits.then(|| claimed.to_ascii_lowercase())
}

/// Why somebody who came back from a provider is not let in. The words are those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignInRejected {
    /// They, or the provider, said no.
    Refused,
    /// The provider does not answer, or not as one.
    ProviderDown,
    /// Nothing is known of their asking: it is too old, was used, or was another browser's.
    UnknownState,
    /// The answer is of another provider than the one that was asked.
    WrongProvider,
    /// Nobody trusted signed it.
    BadSignature,
    /// It was said to somebody else, or about another sign-in.
    NotForUs,
    /// It is too old, or from the future: somebody's clock is wrong.
    WrongTime,
    /// None of what they are is known here.
    NotMapped,
    /// What they are called there cannot be a name here.
    UnusableName,
    /// Somebody else has that name, or one that looks like it.
    NameTaken,
    /// Their account is disabled here.
    Disabled,
}

impl SignInRejected {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::ProviderDown => "provider_down",
            Self::UnknownState => "unknown_state",
            Self::WrongProvider => "wrong_provider",
            Self::BadSignature => "bad_signature",
            Self::NotForUs => "not_for_us",
            Self::WrongTime => "wrong_time",
            Self::NotMapped => "not_mapped",
            Self::UnusableName => "unusable_name",
            Self::NameTaken => "name_taken",
            Self::Disabled => "disabled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|it| (*it).to_owned()).collect()
    }

    fn mapping(admit: AdmissionRule) -> ClaimMapping {
        let group = |name: &str| GroupName::try_from(name).unwrap();
        ClaimMapping {
            groups: vec![("fin".to_owned(), group("finance")), ("sec".to_owned(), group("security"))],
            roles: vec![("ops".to_owned(), PersonRole::Admin), ("fin".to_owned(), PersonRole::Reviewer)],
            admit,
        }
    }

    #[test]
    fn nobody_comes_in_or_is_an_admin_whom_the_mapping_does_not_name() {
        let strict = mapping(AdmissionRule::Mapped);
        assert_eq!(strict.standing(&values(&["staff", "finance", "admin"])), None);
        assert_eq!(strict.standing(&values(&["fin"])).unwrap().role, PersonRole::Reviewer);
        assert_eq!(
            strict.standing(&values(&["fin", "ops"])).unwrap().role,
            PersonRole::Admin,
            "the first line decides"
        );
        assert!(strict.standing(&values(&["ops"])).unwrap().groups.is_empty());
        let open = mapping(AdmissionRule::Anybody).standing(&values(&["staff"])).unwrap();
        assert_eq!((open.role, open.groups.len()), (PersonRole::Reviewer, 0));
    }

    #[test]
    fn a_provider_gives_names_of_plain_ascii_only() {
        assert_eq!(account_name("Alice.Smith@example.org").as_deref(), Some("alice.smith@example.org"));
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for bad in ["", "\u{430}lice", "alice\u{200b}", "al ice", "a/b", "a\u{202e}b", "ａlice", "é", long.as_str()] {
            assert_eq!(account_name(bad), None, "{bad:?}");
        }
    }
}
