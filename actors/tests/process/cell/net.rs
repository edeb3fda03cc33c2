//! What lies between the processes of a cell: a door in front of each, and ways between them that a test breaks.
//!
//! Owns: carrying bytes, each way on its own. Who dials is known by the kernel's table of connections, so that a way
//! has two ends. Must never: look into the bytes, which are under TLS. Next: `../partitions.rs`.

use crate::pace;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// What happens to bytes on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    #[default]
    Open,
    /// They wait and arrive when it is open again, as what a sender repeats does.
    Held,
    /// They are gone, and what follows them later makes no sense.
    Lost,
    /// Connections break, and none is made.
    Cut,
    /// They are late by this.
    Slow(Duration),
}

#[derive(Default)]
struct State {
    ways: BTreeMap<(String, String), Way>,
    names: BTreeMap<u32, String>,
    targets: BTreeMap<String, SocketAddr>,
    carried: Vec<Carried>,
    is_over: bool,
}

struct Carried {
    from: String,
    to: String,
    streams: [TcpStream; 2],
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Doors and ways; they are open at first.
pub struct Net {
    shared: Arc<Shared>,
    doors: Vec<SocketAddr>,
}

impl Net {
    pub fn new() -> Net {
        Net {
            shared: Arc::default(),
            doors: Vec::new(),
        }
    }

    /// A door in front of this one, which leads nowhere yet.
    pub fn door(&mut self, to: &str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared, to) = (listener.local_addr().unwrap(), self.shared.clone(), to.to_owned());
        self.doors.push(address);
        std::thread::spawn(move || {
            while let Ok((stream, dialer)) = listener.accept() {
                if shared.lock().is_over {
                    return;
                }
                let (shared, to) = (shared.clone(), to.clone());
                std::thread::spawn(move || admit(&shared, &to, stream, (dialer.port(), address.port())));
            }
        });
        address
    }

    /// The process of this name listens there.
    pub fn leads(&self, to: &str, target: SocketAddr) {
        self.shared.lock().targets.insert(to.to_owned(), target);
        self.shared.changed.notify_all();
    }

    /// The process of this id has this name.
    pub fn knows(&self, pid: u32, name: &str) {
        self.shared.lock().names.insert(pid, name.to_owned());
        self.shared.changed.notify_all();
    }

    /// What happens to bytes from one to the other; the way back is another one.
    pub fn set(&self, from: &str, to: &str, way: Way) {
        let mut state = self.shared.lock();
        state.ways.insert((from.to_owned(), to.to_owned()), way);
        if way == Way::Cut {
            let is_on = |one: &Carried| (one.from == from && one.to == to) || (one.from == to && one.to == from);
            for one in state.carried.iter().filter(|one| is_on(one)) {
                one.shut();
            }
            state.carried.retain(|one| !is_on(one));
        }
        self.shared.changed.notify_all();
    }

    /// Both ways between every one of these and every one of those.
    pub fn part(&self, these: &[&str], those: &[&str], way: Way) {
        for one in these {
            for other in those.iter().filter(|other| *other != one) {
                self.set(one, other, way);
                self.set(other, one, way);
            }
        }
    }

    /// Every way is open.
    pub fn heal(&self) {
        self.shared.lock().ways.clear();
        self.shared.changed.notify_all();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.carried.iter().for_each(Carried::shut);
        drop(state);
        self.shared.changed.notify_all();
        for door in &self.doors {
            drop(TcpStream::connect(door));
        }
    }
}

impl Carried {
    fn shut(&self) {
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn way(&self, from: &str, to: &str) -> Way {
        let ends = (from.to_owned(), to.to_owned());
        self.ways.get(&ends).copied().unwrap_or_default()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits until there is something; nothing comes when all is over.
    fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(found) = look(&state) {
                return Some(found);
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    /// Once the way carries or loses something: what it does.
    fn unless_held(&self, from: &str, to: &str) -> Option<Way> {
        self.until(|state| Some(state.way(from, to)).filter(|way| *way != Way::Held))
    }

    /// Once bytes that nobody repeats could come through; false where the way is cut.
    fn until_through(&self, from: &str, to: &str) -> bool {
        let way = self.until(|state| Some(state.way(from, to)).filter(|way| !matches!(way, Way::Held | Way::Lost)));
        way.is_some_and(|way| way != Way::Cut)
    }
}

/// Carries one connection, once both ways let it be made.
fn admit(shared: &Arc<Shared>, to: &str, near: TcpStream, ports: (u16, u16)) {
    let Some(from) = dialer(shared, ports) else { return };
    if !shared.until_through(&from, to) || !shared.until_through(to, &from) {
        return;
    }
    let Some(target) = shared.until(|state| state.targets.get(to).copied()) else {
        return;
    };
    let Ok(far) = TcpStream::connect(target) else { return };
    for stream in [&near, &far] {
        stream.set_nodelay(true).unwrap();
    }
    let twin = |stream: &TcpStream| stream.try_clone().unwrap();
    let streams = [twin(&near), twin(&far)];
    shared.lock().carried.push(Carried {
        from: from.clone(),
        to: to.to_owned(),
        streams,
    });
    let (back_from, back_to) = (twin(&far), twin(&near));
    let (back, ends) = (shared.clone(), (to.to_owned(), from.clone()));
    std::thread::spawn(move || carry(&back, (&ends.0, &ends.1), back_from, back_to));
    carry(shared, (&from, to), near, far);
}

/// Carries bytes one way until they end; their end travels as they do.
fn carry(shared: &Shared, (from, to): (&str, &str), mut source: TcpStream, mut target: TcpStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = source.read(&mut bytes) {
        match shared.unless_held(from, to) {
            Some(Way::Lost) => continue,
            Some(Way::Slow(late)) => pace::reach(pace::from_now(late)),
            Some(Way::Open | Way::Held) => {}
            Some(Way::Cut) | None => break,
        }
        if target.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = shared.until_through(from, to);
    let _ = target.shutdown(Shutdown::Write);
}

/// The name of the process that dials; that of a fresh one is told after its start.
fn dialer(shared: &Shared, ports: (u16, u16)) -> Option<String> {
    let found = pace::within(pace::LONG, || {
        let Some(inode) = inode(ports) else {
            return Some(None);
        };
        let state = shared.lock();
        let named = state.names.iter().find(|(pid, _)| has_socket(**pid, &inode));
        (state.is_over || named.is_some()).then(|| named.map(|(_, name)| name.clone()))
    });
    found.flatten()
}

/// The kernel's number of the dialer's end of a connection between these ports, while it is there.
fn inode((dialer, door): (u16, u16)) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
    let found = table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = port(fields.get(1)?)? == dialer && port(fields.get(2)?)? == door;
        is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    });
    found.filter(|inode| inode != "0")
}

fn has_socket(pid: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let mut links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    links.any(|link| link.to_string_lossy() == wanted)
}
