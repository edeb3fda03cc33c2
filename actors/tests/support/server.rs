//! The real binary as a process of its own, on a folder that outlives it.
//!
//! Owns: starting, killing and stopping by process id. Must never: leave a process behind.

use super::api::Api;
use super::pace::{self, until};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A data folder, and how servers are started on it.
pub struct Place {
    folder: tempfile::TempDir,
    words: Vec<String>,
    /// Words in front of the binary: the program that starts it.
    before: Vec<String>,
    /// Where the server finds its store, and where the test does.
    data: [PathBuf; 2],
    listen: SocketAddr,
    starts: usize,
}

impl Place {
    /// A fresh folder; servers may call loopback and run commands.
    pub fn new(words: &[&str]) -> Place {
        let usual = [
            "--allow-commands",
            "--allow-address",
            "127.0.0.0/8",
            "--log-level",
            "warn",
        ];
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        Place {
            folder,
            before: Vec::new(),
            data: [data.clone(), data],
            words: usual.iter().chain(words).map(|word| (*word).to_owned()).collect(),
            listen: "127.0.0.1:0".parse().unwrap(),
            starts: 0,
        }
    }

    /// Servers here have switches for faults: a file in `switches` is one.
    #[cfg(feature = "test-switches")]
    pub fn with_switches(self) -> Place {
        std::fs::create_dir(self.switches()).unwrap();
        self
    }

    #[cfg(feature = "test-switches")]
    pub fn switches(&self) -> PathBuf {
        self.path().join("switches")
    }

    /// Servers are started by these words, which end with running the words that follow them.
    pub fn started_by(mut self, words: &[&str]) -> Place {
        self.before = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The store lies here for servers, and there for the test.
    pub fn with_data(mut self, inside: PathBuf, outside: PathBuf) -> Place {
        self.data = [inside, outside];
        self
    }

    /// Servers log what is this important, and more.
    pub fn telling(mut self, level: &str) -> Place {
        let at = self.words.iter().position(|word| word == "--log-level").unwrap();
        self.words[at + 1] = level.to_owned();
        self
    }

    /// Starts servers on this address.
    pub fn listening_on(mut self, address: SocketAddr) -> Place {
        self.listen = address;
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The store.
    pub fn data(&self) -> PathBuf {
        self.data[1].clone()
    }

    /// Keeps the folder for a look; says where it is.
    pub fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.path().to_owned()
    }

    /// A started process that may not serve yet, or never. After a first `start` its address is known.
    pub fn spawn(&mut self) -> Server {
        self.starts += 1;
        let said = self.path().join(format!("said-{}", self.starts));
        let words = self.before.iter().map(String::as_str);
        let mut words = words.chain([env!("CARGO_BIN_EXE_fencepost"), "serve", "--data"]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(&self.data[0]);
        command.arg("--listen").arg(self.listen.to_string()).args(&self.words);
        for name in ["FENCEPOST_LOG", "FENCEPOST_TOKEN", "FENCEPOST_TOKEN_FILE"] {
            command.env_remove(name);
        }
        // Of the test, not of the server, which would warn of them at each start.
        for name in ["FENCEPOST_KILL_CYCLES", "FENCEPOST_KILL_SEED", "FENCEPOST_CELL_CYCLES"] {
            command.env_remove(name);
        }
        // A server with switches takes the disk to be as they say.
        let switches = self.path().join("switches");
        match switches.exists() {
            true => command.env("FENCEPOST_TEST_SWITCHES", switches),
            false => command.env_remove("FENCEPOST_TEST_SWITCHES"),
        };
        let mut server = Server::spawn(command, said, self.data().join("token"));
        std::fs::write(self.path().join("pid"), server.pid().to_string()).unwrap();
        server.address = (self.listen.port() != 0).then_some(self.listen);
        server
    }

    /// A server that is ready. The next one on this folder listens on the same port.
    pub fn start(&mut self) -> Server {
        let mut server = self.spawn();
        server.wait_until_ready();
        self.listen = server.address();
        server
    }
}

/// A failed test leaves its folder for a look.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept: {}", self.keep().display());
        }
    }
}

/// A server process; killed when dropped.
pub struct Server {
    child: Child,
    said: PathBuf,
    token: PathBuf,
    address: Option<SocketAddr>,
    ended: Option<ExitStatus>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Server {
    /// Starts a process that may not serve yet, or never; it says what it says into a file.
    fn spawn(mut command: Command, said: PathBuf, token: PathBuf) -> Server {
        command.stdout(Stdio::null());
        Server::spawn_as_is(command, said, token)
    }

    fn spawn_as_is(mut command: Command, said: PathBuf, token: PathBuf) -> Server {
        let child = command
            .stdin(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        Server {
            child,
            said,
            token,
            address: None,
            ended: None,
        }
    }

    /// A server by a command of the caller's, ready.
    pub fn start(command: Command, said: PathBuf, token: PathBuf) -> Server {
        let mut server = Server::spawn(command, said, token);
        server.wait_until_ready();
        server
    }

    /// The same, with standard output as the command has it.
    pub fn start_as_is(command: Command, said: PathBuf, token: PathBuf) -> Server {
        let mut server = Server::spawn_as_is(command, said, token);
        server.wait_until_ready();
        server
    }

    /// A process that serves its store to other nodes; where it does.
    pub fn start_store(command: Command, said: PathBuf) -> (Server, SocketAddr) {
        let mut server = Server::spawn(command, said, PathBuf::new());
        let address = pace::within(pace::LONG, || {
            assert!(!server.has_ended(), "the store ended:\n{}", server.said());
            let said = server.said();
            let line = said.lines().find(|line| line.contains(" store for other nodes on "))?;
            line.rsplit_once(' ')?.1.trim().parse().ok()
        });
        let address = address.unwrap_or_else(|| panic!("it never named its address:\n{}", server.said()));
        (server, address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.said).unwrap()).into_owned()
    }

    pub fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The same, while it may not listen yet.
    #[cfg(feature = "test-switches")]
    pub fn try_api(&self) -> Option<Api> {
        let token = std::fs::read_to_string(&self.token).ok()?;
        Some(Api::new(self.address?, token.trim()))
    }

    /// A client with this server's token.
    pub fn api(&self) -> Api {
        let token = std::fs::read_to_string(&self.token).unwrap();
        Api::new(self.address(), token.trim())
    }

    /// Waits until it serves.
    pub fn wait_until_ready(&mut self) {
        let address = pace::within(pace::LONG, || {
            let said = self.said();
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended with {status}:\n{said}");
            }
            let line = said
                .lines()
                .find(|line| line.contains(" on http://") && said.contains('\n'))?;
            let address = line.rsplit_once("http://")?.1;
            // Where the log is JSON, it is the end of a text in it.
            address.split('"').next()?.trim().parse().ok()
        });
        assert!(address.is_some(), "it never named its address:\n{}", self.said());
        self.address = address;
        let mut api = Api::new(self.address(), "");
        let ready = pace::within(pace::LONG, || {
            let answer = api.call("GET", "/readyz", &[], None).ok()?;
            (answer.status == 200).then_some(())
        });
        assert!(ready.is_some(), "never ready:\n{}", self.said());
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as a power cut of the process would: no word of warning.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.ended = Some(self.child.wait().unwrap());
    }

    /// Stops it where it is, or lets it go on.
    pub fn freeze(&self, is_frozen: bool) {
        self.signal(if is_frozen { Signal::STOP } else { Signal::CONT });
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// As Ctrl-C in a terminal does: all of its process group hear it.
    pub fn interrupt(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Asks it to end; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.exit_code()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.ended = self.ended.or(self.child.try_wait().unwrap());
        self.ended.is_some()
    }

    /// Waits for its end: the exit code, or nothing where a signal ended it.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.end().code()
    }

    /// Waits for its end, whatever ended it.
    pub fn end(&mut self) -> ExitStatus {
        let what = format!("the end of process {}", self.pid());
        let status = until(&what, || self.child.try_wait().unwrap());
        self.ended = Some(status);
        status
    }
}
