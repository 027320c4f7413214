//! The sealed row, which is the form of all stored data, and its verification.

use countersign_domain::keys::RowKey;
use subtle::ConstantTimeEq as _;

use super::StoreError;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A table.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Table { $($(#[$doc])* $name,)* }

        impl Table {
            /// Every table.
            pub const ALL: &'static [Table] = &[$(Table::$name,)*];

            /// The table's name in the database.
            pub const fn name(self) -> &'static str {
                match self { $(Table::$name => $text,)* }
            }
        }
    };
}

tables! {
    /// The gateway: its identity and halts. It has one row.
    Gateway = "gateway",
    /// Flows, with their active policy and halts.
    Flows = "flows",
    /// Policies, by digest.
    Policies = "policies",
    /// Policy change requests.
    Amendments = "amendments",
    /// Interrupts from host applications. Alias: source, attempt and the host's digest.
    Interrupts = "interrupts",
    /// Signed posts of host applications, by token and `webhook-id`.
    Posts = "posts",
    /// Threads.
    Threads = "threads",
    /// Transitions, by digest. Alias: the proposal's identity.
    Transitions = "transitions",
    /// Rejected attempts, by the proposal's identity.
    Rejections = "rejections",
    /// Steps of agents' runs and their attempts, by thread, node and name.
    Steps = "steps",
    /// Committed transitions' entries, by thread and version.
    Entries = "entries",
    /// States, in full or as a delta on the previous version, by thread and version.
    States = "states",
    /// Archived ranges of versions, by thread and last version.
    Archives = "archives",
    /// Locations of archived transitions, by digest.
    Whereabouts = "whereabouts",
    /// Reviews of held transitions, with their votes.
    Holds = "holds",
    /// Receipts, by jti.
    Receipts = "receipts",
    /// Writes, by principal and write id.
    Writes = "writes",
    /// Accounts. Alias: the name.
    Accounts = "accounts",
    /// Tokens of machines.
    Tokens = "tokens",
    /// Browser sessions.
    Sessions = "sessions",
    /// One-time links.
    Links = "links",
    /// Counters of failed sign-ins.
    Tries = "tries",
    /// Approximate times at which tokens, accounts and sessions were last used.
    Sightings = "sightings",
    /// Passkeys. Alias: the challenge of the registration.
    Passkeys = "passkeys",
    /// Counts of hours and days, for Insight.
    Figures = "figures",
    /// Delegations, by delegate. Alias: the absent reviewer and the delegation's number.
    Delegations = "delegations",
    /// Cursors of readers of the audit log.
    Marks = "marks",
    /// Email addresses of accounts.
    Contacts = "contacts",
    /// Pending email notifications.
    Letters = "letters",
    /// Responses to requests with an idempotency key, by key.
    Answers = "answers",
    /// Events that agents added to their runs, by thread and number. Alias: the event's id.
    EpisodeEvents = "episode_events",
    /// Imported runs, by their displayed name.
    Imports = "imports",
    /// Files of imported runs, in pieces.
    ImportPieces = "import_pieces",
    /// Events. Alias: thread and number.
    Events = "events",
    /// Events without a log position.
    Outbox = "outbox",
    /// The audit log: the position of each event.
    Log = "log",
    /// Endpoints of events.
    Endpoints = "endpoints",
    /// Delivery cursors of endpoints.
    Lanes = "lanes",
    /// Deliveries, by endpoint and descending log position: the latest come first.
    Deliveries = "deliveries",
}

impl Table {
    /// Checks that lists by owner and state exist. Tables that grow with every proposal, verify or event have none,
    /// because the index would slow down each write without a use.
    pub const fn is_listed_by_facets(self) -> bool {
        match self {
            Self::Gateway
            | Self::Flows
            | Self::Policies
            | Self::Amendments
            | Self::Interrupts
            | Self::Threads
            | Self::Holds
            | Self::Log => true,
            Self::Accounts
            | Self::Tokens
            | Self::Sessions
            | Self::Links
            | Self::Passkeys
            | Self::Delegations
            | Self::Letters
            | Self::Answers => true,
            Self::Transitions | Self::Rejections | Self::Entries | Self::States => false,
            Self::Receipts | Self::Writes | Self::Events | Self::Outbox => false,
            Self::EpisodeEvents | Self::Imports | Self::ImportPieces | Self::Steps => false,
            Self::Archives => true,
            Self::Whereabouts => false,
            Self::Posts | Self::Tries | Self::Sightings | Self::Figures | Self::Marks | Self::Contacts => false,
            Self::Deliveries => true,
            Self::Endpoints | Self::Lanes => false,
        }
    }

    /// Checks that the rows can be listed by due time, the latest first. These tables have no owner, and people browse
    /// them.
    pub const fn is_listed_by_moment(self) -> bool {
        matches!(self, Self::Rejections | Self::Imports)
    }

    /// Checks that an owner's rows can be listed by due time. Most of these rows are expired, and only the others are
    /// requested.
    pub const fn is_owned_for_a_time(self) -> bool {
        matches!(self, Self::Sessions)
    }

    /// Checks that the rows have labels, because people search them by several terms. Each label is one more entry to
    /// write.
    pub const fn is_labelled(self) -> bool {
        matches!(self, Self::Holds | Self::Threads)
    }
}

/// The lookup columns of a row, in addition to its id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facets {
    /// A second unique name.
    pub alias: Option<String>,
    pub owner: String,
    /// A code by which lists filter.
    pub state: String,
    /// A time in milliseconds by which lists sort. 0 if none applies.
    pub due: i64,
}

/// HMAC-SHA-256 over every part of a row.
pub type Seal = Vec<u8>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedRow {
    pub table: Table,
    pub id: String,
    pub facets: Facets,
    /// The revision: from 1, incremented by every replacement.
    pub revision: i64,
    pub body: String,
    pub key_id: String,
    pub mac: Seal,
}

impl SealedRow {
    pub fn seal(key: &RowKey, table: Table, id: String, facets: Facets, revision: i64, body: String) -> Self {
        let mut row = Self { table, id, facets, revision, body, key_id: key.id().to_owned(), mac: Vec::new() };
        row.mac = key.hmac(&row.sealed_bytes()).to_vec();
        row
    }

    /// Returns the body if the seal matches the key and all other columns.
    pub fn open(&self, key: &RowKey) -> Result<&str, StoreError> {
        let expected = key.hmac(&self.sealed_bytes());
        // The comparison takes constant time, against timing attacks.
        let genuine = self.key_id == key.id() && bool::from(expected.as_slice().ct_eq(&self.mac));
        if genuine { Ok(&self.body) } else { Err(StoreError::Unsealed(self.table.name())) }
    }

    /// Returns the sealed bytes. Each part has its length before it, so no byte can move from one part to the next.
    pub fn sealed_bytes(&self) -> Vec<u8> {
        let numbers = [self.revision.to_be_bytes(), self.facets.due.to_be_bytes()];
        let alias = self.facets.alias.as_deref();
        let parts: [&[u8]; 10] = [
            b"countersign.row.v1",
            self.table.name().as_bytes(),
            self.id.as_bytes(),
            self.key_id.as_bytes(),
            &numbers[0],
            &numbers[1],
            if alias.is_some() { b"alias" } else { b"" },
            alias.unwrap_or_default().as_bytes(),
            self.facets.owner.as_bytes(),
            self.facets.state.as_bytes(),
        ];
        let mut bytes = Vec::with_capacity(self.body.len() + 512);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(self.body.as_bytes());
        bytes
    }
}
