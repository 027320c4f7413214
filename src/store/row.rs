//! The sealed row: the one shape in which everything is kept, and the only place that decodes it.

use subtle::ConstantTimeEq as _;

use crate::domain::keys::RowKey;

use super::StoreError;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Where rows of one kind are kept.
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
    /// The gateway itself: its identity and whether all is halted. One row.
    Gateway = "gateway",
    /// Flows, with their active policy and halts.
    Flows = "flows",
    /// Policies, by digest.
    Policies = "policies",
    /// Policies that people are asked about.
    Amendments = "amendments",
    /// What hosts asked people about; alias: source, attempt and the host's digest.
    Interrupts = "interrupts",
    /// Posts that hosts signed, by token and webhook-id.
    Posts = "posts",
    /// Threads.
    Threads = "threads",
    /// Transitions, by digest; alias: what makes two requests the same proposal.
    Transitions = "transitions",
    /// Rejected attempts, by what makes two requests the same proposal.
    Rejections = "rejections",
    /// Steps of agents' runs and how they were tried, by thread, node and name.
    Steps = "steps",
    /// Committed transitions' entries, by thread and version.
    Entries = "entries",
    /// States, whole or as a delta on the version before, by thread and version.
    States = "states",
    /// Versions that are in files and no longer in the database, by thread and last version.
    Archives = "archives",
    /// Where transitions are whose versions are in archives, by digest.
    Whereabouts = "whereabouts",
    /// Holds with their votes.
    Holds = "holds",
    /// Receipts, by jti.
    Receipts = "receipts",
    /// Writes, by principal and write id.
    Writes = "writes",
    /// Accounts; alias: the name.
    Accounts = "accounts",
    /// Tokens of machines.
    Tokens = "tokens",
    /// Browser sessions.
    Sessions = "sessions",
    /// One-time links.
    Links = "links",
    /// Failed sign-ins that still count.
    Tries = "tries",
    /// When tokens, people and sessions were last seen, roughly.
    Sightings = "sightings",
    /// Passkeys; alias: the challenge each was registered with.
    Passkeys = "passkeys",
    /// What was counted of hours and days, for Insight.
    Figures = "figures",
    /// Who votes in whose place, by the one who does; alias: the other, and which of theirs it is.
    Delegations = "delegations",
    /// How far the log was read by those who go on where they stopped.
    Marks = "marks",
    /// Where people are told that something waits for them.
    Contacts = "contacts",
    /// Who is still to be told of what.
    Letters = "letters",
    /// What was answered to requests that have a key of their sender's, by key.
    Answers = "answers",
    /// What agents added to their runs, by thread and number; alias: the event's id.
    EpisodeEvents = "episode_events",
    /// Runs that were imported, by the name that they are shown under.
    Imports = "imports",
    /// Their files, in pieces.
    ImportPieces = "import_pieces",
    /// Events; alias: thread and number.
    Events = "events",
    /// Events that have no place in the log yet.
    Outbox = "outbox",
    /// The log: each event's place.
    Log = "log",
    /// Where events are sent.
    Endpoints = "endpoints",
    /// How far in the log each endpoint was served.
    Lanes = "lanes",
    /// Events to endpoints, by endpoint and falling place in the log: the last come first.
    Deliveries = "deliveries",
}

impl Table {
    /// Whether lists by owner and state exist. Tables that grow with every proposal, verify or event are only
    /// looked up by name, or listed whole: a further index would make each of these slower for nobody.
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

    /// Whether the rows can be listed by their moments, the last first: what people look through, and nobody owns.
    pub const fn is_listed_by_moment(self) -> bool {
        matches!(self, Self::Rejections | Self::Imports)
    }

    /// Whether an owner's rows can be listed by their moments: where most are over, and those that are not are asked for.
    pub const fn is_owned_for_a_time(self) -> bool {
        matches!(self, Self::Sessions)
    }

    /// Whether the rows bear labels: what people search by several things at once. Each label is one more entry to
    /// write with its row.
    pub const fn is_labelled(self) -> bool {
        matches!(self, Self::Holds | Self::Threads)
    }
}

/// What a row is looked up by, besides its id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facets {
    /// A second unique name.
    pub alias: Option<String>,
    pub owner: String,
    /// One word that lists filter by.
    pub state: String,
    /// A moment in milliseconds that lists order by; 0 where none applies.
    pub due: i64,
}

/// HMAC-SHA-256 over every part of a row.
pub type Seal = Vec<u8>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedRow {
    pub table: Table,
    pub id: String,
    pub facets: Facets,
    /// From 1, one more with every replacement.
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

    /// The body, if the seal is this key's and covers everything as it stands.
    pub fn open(&self, key: &RowKey) -> Result<&str, StoreError> {
        let expected = key.hmac(&self.sealed_bytes());
        let genuine = self.key_id == key.id() && bool::from(expected.as_slice().ct_eq(&self.mac));
        if genuine { Ok(&self.body) } else { Err(StoreError::Unsealed(self.table.name())) }
    }

    /// Every part with its length before it, so that nothing can move from one part to the next.
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
