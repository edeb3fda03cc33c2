//! The one list of settings: path in the file, flag, variable, kind, default and meaning.
//!
//! Owns: what a server can be told. Flags, the reader of the file, `config show`, the JSON Schema and
//! `docs/config.md` are made from it. Must never: be repeated elsewhere. Next: `kind.rs`.

use super::kind::Kind;
use fencepost_core::limits::{
    CLOCK_OFFSET_MS, CLOCK_OFFSET_MS_MAX, CLOCK_OFFSET_MS_MIN, KEY_RETENTION_MS_MAX, KEY_RETENTION_MS_MIN,
    LEASE_MS_MAX, LEASE_MS_MIN, SHARD_COUNT_DEFAULT, SHARD_COUNT_MAX, SHARD_LEASE_MS_MAX, SHARD_LEASE_MS_MIN,
    THREAD_COUNT_MAX, WORKER_SLOTS_DEFAULT, WORKER_SLOTS_MAX,
};

/// Where the store lies when nobody says.
pub const DATA_DEFAULT: &str = "./fencepost-data";

/// The variable that names the file.
pub const FILE_VARIABLE: &str = "FENCEPOST_CONFIG";

/// One thing a server can be told.
#[derive(Debug)]
pub struct Setting {
    /// Its path in the file, such as `worker.slots`.
    pub path: &'static str,
    /// Its flag without dashes, and what the help calls the value; a secret has none.
    pub flag: Option<(&'static str, &'static str)>,
    /// Its variable.
    pub env: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What holds when nobody says.
    pub preset: Preset,
    /// What it means, as a sentence without a period.
    pub about: &'static str,
    /// Not for `dev`.
    pub serve_only: bool,
}

/// What holds when nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Nothing; what that means, in words.
    Unset(&'static str),
    /// This text, read as if it were given.
    Text(&'static str),
    /// This number.
    Number(u64),
    /// On or off.
    Switch(bool),
}

impl Setting {
    const fn new(path: &'static str, env: &'static str, kind: Kind, preset: Preset, about: &'static str) -> Setting {
        Setting {
            path,
            flag: None,
            env,
            kind,
            preset,
            about,
            serve_only: false,
        }
    }

    const fn flag(mut self, flag: &'static str, value: &'static str) -> Setting {
        self.flag = Some((flag, value));
        self
    }

    const fn serve_only(mut self) -> Setting {
        self.serve_only = true;
        self
    }

    /// The last word of its path: its key in its section.
    pub fn key(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The section it stands in; none at the top of the file.
    pub fn section(&self) -> Option<&'static str> {
        self.path.rsplit_once('.').map(|(section, _)| section)
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident = $setting:expr;)*) => {
        $($(#[$doc])* pub static $name: Setting = $setting;)*
        /// Every setting, in the order of the help page.
        pub static SETTINGS: &[&Setting] = &[$(&$name),*];
    };
}

const ROLES_KNOWN: &[(&str, &str)] = &[
    ("all", "Everything"),
    ("store", "Holds the store"),
    ("scheduler", "Owns shards"),
    ("worker", "Runs attempts"),
    ("gateway", "Serves the API"),
    ("coordinator", "Assigns shards"),
];

const LOG_FORMS: &[(&str, &str)] = &[("text", "For people"), ("json", "One JSON object a line")];

const LOG_LEVELS: &[(&str, &str)] = &[
    ("error", "What needs a person"),
    ("warn", "And what is odd"),
    ("info", "And what a server does"),
    ("debug", "And each transition"),
    ("trace", "And everything else"),
];

settings! {
    /// Where the store lies.
    DATA = Setting::new(
        "data", "FENCEPOST_DATA", Kind::Path, Preset::Text(DATA_DEFAULT),
        "Folder of the store and the token; made at the first start",
    ).flag("data", "FOLDER");
    /// Name of the node.
    NODE = Setting::new(
        "node", "FENCEPOST_NODE", Kind::Name, Preset::Text("local"),
        "Name of this node; it stays the same for a store",
    ).flag("node", "NAME");
    /// Shards of a new store.
    SHARDS = Setting::new(
        "shards", "FENCEPOST_SHARDS", Kind::Number { min: 1, max: SHARD_COUNT_MAX as u64 },
        Preset::Unset(SHARDS_UNSET),
        "Shards of a new store, 16 by default; a store made with another number is refused",
    ).flag("shards", "N");
    /// Threads for shards.
    THREADS = Setting::new(
        "threads", "FENCEPOST_THREADS", Kind::Number { min: 1, max: THREAD_COUNT_MAX as u64 },
        Preset::Unset("one per processor"),
        "Threads for shards; one per processor by default",
    ).flag("threads", "N");
    /// What the process does.
    ROLES = Setting::new(
        "roles", "FENCEPOST_ROLES", Kind::List(&Kind::Word(ROLES_KNOWN)), Preset::Text("all"),
        "What this process does: all; or the store alone; or the others, with a worker or without; or a worker alone",
    ).flag("roles", "ROLES").serve_only();
    /// Where the API listens.
    API_LISTEN = Setting::new(
        "api.listen", "FENCEPOST_LISTEN", Kind::Address, Preset::Text("127.0.0.1:4480"),
        "Where the API listens; loopback only",
    ).flag("listen", "ADDRESS");
    /// The API's token itself.
    API_TOKEN = Setting::new(
        "api.token", "FENCEPOST_API_TOKEN", Kind::Secret, Preset::Unset("the file token in the folder"),
        "What clients show, itself; only from the environment, and never shown. It wins over the file token in the folder",
    ).serve_only();
    /// Where the store listens for nodes.
    MESH_LISTEN = Setting::new(
        "mesh.listen", "FENCEPOST_MESH_LISTEN", Kind::Address, Preset::Unset("a free port; none in a process with all roles"),
        "Where this node listens for others; beyond loopback only with certificates. Without the store role a free port by default",
    ).flag("mesh-listen", "ADDRESS").serve_only();
    /// Where the others are told to come.
    MESH_ADVERTISE = Setting::new(
        "mesh.advertise", "FENCEPOST_MESH_ADVERTISE", Kind::HostPort, Preset::Unset("where it listens"),
        "Where other nodes are told to come, where that is another address than it listens on: behind a proxy or NAT, or when \
         it listens on all addresses",
    ).flag("mesh-advertise", "HOST:PORT").serve_only();
    /// How long a silent node keeps its shards.
    MESH_SHARD_LEASE = Setting::new(
        "mesh.shard_lease", "FENCEPOST_SHARD_LEASE",
        Kind::Duration { min_ms: SHARD_LEASE_MS_MIN, max_ms: SHARD_LEASE_MS_MAX }, Preset::Text("5s"),
        "With the store role: how long a node may be silent before others take its shards",
    ).flag("shard-lease", "TIME").serve_only();
    /// Where the store is.
    MESH_STORE_AT = Setting::new(
        "mesh.store_at", "FENCEPOST_STORE_AT", Kind::HostPort, Preset::Unset("the store is in this process"),
        "Where a node without the store role finds it, such as 127.0.0.1:4481",
    ).flag("store-at", "HOST:PORT").serve_only();
    /// The file of the nodes' secret.
    MESH_SECRET_FILE = Setting::new(
        "mesh.secret_file", "FENCEPOST_MESH_SECRET_FILE", Kind::Path, Preset::Unset("mesh-secret in the folder"),
        "The store's mesh-secret, for a node without the store role; mesh-secret in its own folder by default",
    ).flag("mesh-secret", "FILE").serve_only();
    /// The nodes' secret itself.
    MESH_SECRET = Setting::new(
        "mesh.secret", "FENCEPOST_MESH_SECRET", Kind::Secret, Preset::Unset("read from its file"),
        "What the nodes share, itself; only from the environment, and never shown. It wins over the file",
    ).serve_only();
    /// The CA of the nodes.
    MESH_CA = Setting::new(
        "mesh.ca", "FENCEPOST_MESH_CA", Kind::Path, Preset::Unset("no certificates"),
        "Certificate of the cell's CA; with --mesh-cert and --mesh-key nodes talk under TLS only. New files are taken up while the node runs",
    ).flag("mesh-ca", "FILE").serve_only();
    /// The node's certificate.
    MESH_CERT = Setting::new(
        "mesh.cert", "FENCEPOST_MESH_CERT", Kind::Path, Preset::Unset("no certificates"),
        "Certificate of this node, made by fencepost certs node",
    ).flag("mesh-cert", "FILE").serve_only();
    /// Its key.
    MESH_KEY = Setting::new(
        "mesh.key", "FENCEPOST_MESH_KEY", Kind::Path, Preset::Unset("no certificates"),
        "Key of this node's certificate; a file that not everyone can read",
    ).flag("mesh-key", "FILE").serve_only();
    /// How far the clock may be off.
    CLOCK_OFFSET_MAX = Setting::new(
        "clock.offset_max", "FENCEPOST_CLOCK_OFFSET_MAX",
        Kind::Duration { min_ms: CLOCK_OFFSET_MS_MIN, max_ms: CLOCK_OFFSET_MS_MAX }, Preset::Text("60s"),
        "How far this node's clock may be from that of a store on another node; beyond it the node takes and gives no work",
    ).flag("clock-offset-max", "TIME").serve_only();
    /// Attempts at once.
    WORKER_SLOTS = Setting::new(
        "worker.slots", "FENCEPOST_SLOTS", Kind::Number { min: 1, max: WORKER_SLOTS_MAX as u64 },
        Preset::Number(WORKER_SLOTS_DEFAULT as u64),
        "Attempts that run at once",
    ).flag("slots", "N");
    /// Queues.
    WORKER_QUEUES = Setting::new(
        "worker.queues", "FENCEPOST_QUEUES", Kind::List(&Kind::Name), Preset::Unset("all queues"),
        "Only work on this queue; may be repeated. All by default",
    ).flag("queue", "NAME");
    /// Length of attempts' leases.
    WORKER_LEASE = Setting::new(
        "worker.lease", "FENCEPOST_LEASE", Kind::Duration { min_ms: LEASE_MS_MIN, max_ms: LEASE_MS_MAX }, Preset::Text("30s"),
        "How long a worker may be silent before its attempts are another's; the same on every node, and longer than a \
         move of shards takes, or attempts run twice at each",
    ).flag("lease", "TIME");
    /// Patience of a stop.
    WORKER_DRAIN = Setting::new(
        "worker.drain", "FENCEPOST_DRAIN", Kind::ANY_DURATION, Preset::Text("30s"),
        "How long a stop waits for attempts that run",
    ).flag("drain", "TIME");
    /// How long keys are kept.
    KEY_RETENTION = Setting::new(
        "jobs.key_retention", "FENCEPOST_KEY_RETENTION",
        Kind::Duration { min_ms: KEY_RETENTION_MS_MIN, max_ms: KEY_RETENTION_MS_MAX }, Preset::Text("1d"),
        "How long idempotency keys are kept after the end of jobs that end from now on",
    ).flag("key-retention", "TIME");
    /// Commands allowed.
    ALLOW_COMMANDS = Setting::new(
        "targets.allow_commands", "FENCEPOST_ALLOW_COMMANDS", Kind::Switch, Preset::Switch(false),
        "Let jobs run commands on this machine, with this server's rights",
    ).flag("allow-commands", "true|false").serve_only();
    /// Authorization headers allowed.
    ALLOW_AUTHORIZATION = Setting::new(
        "targets.allow_authorization", "FENCEPOST_ALLOW_AUTHORIZATION", Kind::Switch, Preset::Switch(false),
        "Let jobs send an authorization header",
    ).flag("allow-authorization", "true|false").serve_only();
    /// Addresses allowed.
    ALLOW_ADDRESSES = Setting::new(
        "targets.allow_addresses", "FENCEPOST_ALLOW_ADDRESSES", Kind::List(&Kind::Range),
        Preset::Unset("public addresses only"),
        "Also let http targets reach these addresses, such as 10.1.0.0/16; may be repeated",
    ).flag("allow-address", "RANGE");
    /// Form of log lines.
    LOG_FORM = Setting::new(
        "log.form", "FENCEPOST_LOG_FORM", Kind::Word(LOG_FORMS), Preset::Text("text"),
        "Form of log lines",
    ).flag("log", "LOG");
    /// Least important log lines.
    LOG_LEVEL = Setting::new(
        "log.level", "FENCEPOST_LOG_LEVEL", Kind::Word(LOG_LEVELS), Preset::Text("info"),
        "Least important lines to log; FENCEPOST_LOG wins",
    ).flag("log-level", "LEVEL");
}

const SHARDS_UNSET: &str = "16, or what the store has";
const _: () = assert!(SHARD_COUNT_DEFAULT == 16 && CLOCK_OFFSET_MS == 60_000);
