//! The connections between nodes, and what befalls them beside a cut: late and lost segments, a narrow way, resets,
//! ends that nobody closes, frames that come twice or in another order.
//!
//! Owns: which connections there are, which faults touch them, and whether one was felt. What TCP promises stays
//! promised: a lost segment is sent again and so is late, and all behind it; a connection that cannot go on ends. Only
//! `duplicate` and `reorder` do what no TCP does: they play frames to the receiver as a bad proxy would. Must never:
//! touch a connection that no fault names. Next: `rough.rs` (one end of a connection), `director.rs`.

use super::World;
use super::rough::{End, Rough};
use crate::runtime::Stream;
use crate::scenario::plan::{Between, Fault};
use fencepost::net::seam::Seam;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::net::TcpStream;

/// The connections and what befalls them. Clones share it.
#[derive(Clone, Default)]
pub struct Links(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    ends: Vec<Weak<End>>,
    spells: Vec<Spell>,
    cuts: Vec<Cut>,
    made: u64,
    streams: u64,
}

/// Between a machine and all others, or some.
#[derive(Clone, Debug)]
pub struct Way {
    /// The machine.
    pub at: Ipv4Addr,
    /// The others; empty for all.
    pub peers: Vec<Ipv4Addr>,
}

impl Way {
    fn touches(&self, one: Ipv4Addr, other: Ipv4Addr) -> bool {
        let is_peer = |ip: Ipv4Addr| self.peers.is_empty() || self.peers.contains(&ip);
        (self.at == one && is_peer(other)) || (self.at == other && is_peer(one))
    }
}

struct Spell {
    fault: usize,
    kind: &'static str,
    way: Way,
    percent: u64,
    late: Between,
    bandwidth: u64,
    counted: String,
}

/// Nothing comes through, one way or both; how much did not.
struct Cut {
    number: u64,
    way: Way,
    ways: (bool, bool),
    kept: u64,
}

/// What becomes of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// It comes once, in its turn.
    Once,
    /// It comes twice.
    Twice,
    /// It comes after the next.
    Later,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault of what comes over these connections begins.
    pub fn begin(&self, fault: &Fault, way: Way) {
        self.lock().spells.push(Spell {
            fault: fault.number,
            kind: fault.kind,
            way,
            percent: fault.percent,
            late: fault.slower,
            bandwidth: fault.bandwidth,
            counted: fault.counted(),
        });
    }

    /// It ends.
    pub fn end(&self, fault: usize) {
        self.lock().spells.retain(|spell| spell.fault != fault);
    }

    /// Everything ends.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.spells.clear();
        inner.cuts.clear();
    }

    /// Whether nothing befalls what comes over any connection.
    pub fn is_calm(&self) -> bool {
        self.lock().spells.is_empty()
    }

    /// A machine is cut off: what is sent from now on is counted. `ways` are in and out.
    pub fn cut(&self, way: Way, ways: (bool, bool)) -> u64 {
        let mut inner = self.lock();
        inner.made += 1;
        let (number, kept) = (inner.made, 0);
        inner.cuts.push(Cut {
            number,
            way,
            ways,
            kept,
        });
        number
    }

    /// It is not any more; how many segments and connections it has kept.
    pub fn mend(&self, number: u64) -> u64 {
        let mut inner = self.lock();
        let kept = inner
            .cuts
            .iter()
            .find(|cut| cut.number == number)
            .map_or(0, |cut| cut.kept);
        inner.cuts.retain(|cut| cut.number != number);
        kept
    }

    /// Something is sent, or a connection asked for, from one machine to the other.
    pub fn sent(&self, from: Ipv4Addr, to: Ipv4Addr) {
        for cut in &mut self.lock().cuts {
            let (is_in, is_out) = cut.ways;
            let is_kept = (is_out && cut.way.at == from) || (is_in && cut.way.at == to);
            cut.kept += u64::from(is_kept && cut.way.touches(from, to));
        }
    }

    /// Breaks the connections that there are: both ends hear of it, or only the machine's own. How many.
    pub fn reset(&self, way: &Way, is_told: bool) -> usize {
        let ends: Vec<Arc<End>> = self.lock().ends.iter().filter_map(Weak::upgrade).collect();
        let mut broken = 0;
        for end in ends.iter().filter(|end| way.touches(end.local, end.peer)) {
            let is_own = end.local == way.at;
            match is_own || is_told {
                true => end.reset(),
                false => end.deafen(),
            }
            broken += usize::from(is_own);
        }
        broken
    }

    /// How late a segment is that comes over this connection, in microseconds, by all that befalls it.
    pub fn late(&self, world: &World, (local, peer): (Ipv4Addr, Ipv4Addr), bytes: usize, stream: &mut Stream) -> u64 {
        let mut late = 0;
        for spell in &self.lock().spells {
            let met = match spell.kind {
                _ if !spell.way.touches(local, peer) => 0,
                "lossy" if stream.percent(spell.percent) => stream.between(spell.late.0, spell.late.1),
                "slow-link" => bytes as u64 * 1_000_000 / spell.bandwidth.max(1),
                _ => 0,
            };
            if met > 0 {
                world.feel(spell.counted.clone());
            }
            late += met;
        }
        late
    }

    /// How a frame comes over this connection.
    pub fn play(&self, world: &World, (local, peer): (Ipv4Addr, Ipv4Addr), stream: &mut Stream) -> Played {
        for spell in &self.lock().spells {
            let played = match spell.kind {
                "duplicate" => Played::Twice,
                "reorder" => Played::Later,
                _ => continue,
            };
            if spell.way.touches(local, peer) && stream.percent(spell.percent) {
                world.feel(spell.counted.clone());
                return played;
            }
        }
        Played::Once
    }

    fn add(&self, end: &Arc<End>) -> u64 {
        let mut inner = self.lock();
        inner.ends.retain(|end| end.strong_count() > 0);
        inner.ends.push(Arc::downgrade(end));
        inner.streams += 1;
        inner.streams
    }
}

/// The world takes hold of the connections of its nodes.
pub struct Hold(pub World);

impl Seam for Hold {
    fn dialing(&self, to: &str) {
        let to = to.parse::<std::net::SocketAddrV4>().ok();
        if let (Some(from), Some(to)) = (self.0.sim.here(), to) {
            self.0.links.sent(from.ip(), *to.ip());
        }
    }

    fn wrap(&self, stream: TcpStream) -> Box<dyn fencepost::net::Stream> {
        let ip = |address: std::io::Result<std::net::SocketAddr>| match address.map(|address| address.ip()) {
            Ok(IpAddr::V4(ip)) => Some(ip),
            _ => None,
        };
        let (local, peer) = (ip(stream.local_addr()), ip(stream.peer_addr()));
        let (Some(local), Some(peer)) = (local, peer) else {
            return Box::new(stream);
        };
        let end = Arc::new(End::new(local, peer));
        let number = self.0.links.add(&end);
        let own = Stream::new(self.0.options.seed, &format!("connection {number}"));
        Box::new(Rough::new(&self.0, stream, end, own))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::runtime::{SimConfig, SimNode, simulate, sleep_here};
    use crate::scenario::Scenario;
    use crate::trace::Trace;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const STORY: &str = "story = \"Two machines.\"\n[topology]\nnodes = { store = 1, scheduler = 1 }\n[[workload]]\n\
        kind = \"one-shot-jobs\"\ncount = 1\nover = \"20s\"\n[[fault]]\nrole = \"store\"\n";
    const FRAMES: u8 = 6;

    /// When something was heard, and its number; none at the end.
    type Heard = (u64, Option<u8>);

    /// What one machine heard of the numbered frames that the other sent, a tenth of a second after each other, with
    /// the moment of each; `None` when its end failed. After a second `what` happens.
    fn heard(fault: &str, what: impl Fn(&World, &SimNode, &SimNode) + Send + 'static) -> Vec<Heard> {
        let options = Scenario::parse("two", &format!("{STORY}{fault}"))
            .unwrap()
            .draw(1, None);
        let config = SimConfig {
            seed: 1,
            starts_at: options.starts_at,
            limit: Duration::from_secs(60),
            latency: (200, 300),
        };
        let run = |sim: crate::runtime::Sim| async move {
            let world = World::new(sim, options);
            let (one, other) = (
                world.sim.new_node("one", Ipv4Addr::new(10, 9, 0, 1)),
                world.sim.new_node("other", Ipv4Addr::new(10, 9, 0, 2)),
            );
            let told: Arc<Mutex<Vec<Heard>>> = Arc::default();
            let (here, tell) = (world.clone(), told.clone());
            other.run(move || async move {
                let listener = TcpListener::bind(("10.9.0.2", 7)).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = Hold(here.clone()).wrap(stream);
                let mut frame = [0; 5];
                loop {
                    let read = stream.read_exact(&mut frame).await;
                    let number = read.ok().map(|_| frame[4]);
                    tell.lock().unwrap().push((here.sim.now(), number));
                    if number.is_none() {
                        return;
                    }
                }
            });
            let here = world.clone();
            one.run(move || async move {
                sleep_here(10_000).await;
                let stream = TcpStream::connect(("10.9.0.2", 7)).await.unwrap();
                let mut stream = Hold(here).wrap(stream);
                for number in 0..FRAMES {
                    if stream.write_all(&[0, 0, 0, 1, number]).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                    sleep_here(100_000).await;
                }
                std::future::pending::<()>().await;
            });
            let plan = world.options.plan.clone().unwrap();
            let way = Way {
                at: other.ip(),
                peers: Vec::new(),
            };
            world.links.begin(&plan.faults[0], way);
            world.sim.sleep(1_000_000).await;
            what(&world, &one, &other);
            world.sim.sleep(20_000_000).await;
            told.lock().unwrap().clone()
        };
        simulate(config, Trace::new(false), run).unwrap()
    }

    fn numbers(heard: &[Heard]) -> Vec<Option<u8>> {
        heard.iter().map(|(_, number)| *number).collect()
    }

    fn all(order: &[u8]) -> Vec<Option<u8>> {
        order.iter().copied().map(Some).collect()
    }

    #[test]
    fn what_is_lost_is_late_and_so_is_all_behind_it() {
        let heard = heard("kind = \"lossy\"\npercent = 100\nby = \"1s\"\n", |_, _, _| {});
        assert_eq!(numbers(&heard), all(&[0, 1, 2, 3, 4, 5]));
        assert!(heard[0].0 >= 1_000_000 && heard[5].0 >= 2_000_000, "{heard:?}");
    }

    #[test]
    fn a_narrow_way_lets_so_many_bytes_through_in_a_second() {
        let heard = heard("kind = \"slow-link\"\nbandwidth = 100\n", |_, _, _| {});
        assert_eq!(numbers(&heard), all(&[0, 1, 2, 3, 4, 5]));
        assert!(heard[0].0 >= 60_000, "{heard:?}");
    }

    #[test]
    fn frames_are_played_twice_or_after_the_next() {
        let twice = heard("kind = \"duplicate\"\npercent = 100\n", |_, _, _| {});
        assert_eq!(numbers(&twice), all(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]));
        let swapped = heard("kind = \"reorder\"\npercent = 100\n", |_, _, _| {});
        assert_eq!(numbers(&swapped), all(&[1, 0, 3, 2, 5, 4]));
    }

    #[test]
    fn a_reset_ends_both_ends_and_a_half_open_one_hears_nothing() {
        let reset = |is_told| {
            move |world: &World, one: &SimNode, _: &SimNode| {
                let way = Way {
                    at: one.ip(),
                    peers: Vec::new(),
                };
                assert_eq!(world.links.reset(&way, is_told), 1);
            }
        };
        let fault = "kind = \"reset\"\n";
        let told = heard(fault, reset(true));
        assert_eq!(numbers(&told).last(), Some(&None), "{told:?}");
        let deaf = heard(fault, reset(false));
        assert_eq!(numbers(&deaf), all(&[0, 1, 2, 3, 4, 5]), "it waits for ever");
    }

    #[test]
    fn what_a_cut_keeps_back_is_counted_by_its_direction() {
        let links = Links::default();
        let (one, other, third) = (
            Ipv4Addr::new(10, 9, 0, 1),
            Ipv4Addr::new(10, 9, 0, 2),
            Ipv4Addr::new(10, 9, 0, 3),
        );
        let way = Way {
            at: one,
            peers: vec![other],
        };
        let number = links.cut(way, (true, false));
        links.sent(one, other);
        links.sent(third, one);
        assert_eq!(links.mend(number), 0);
        let way = Way {
            at: one,
            peers: Vec::new(),
        };
        let number = links.cut(way, (true, false));
        links.sent(one, other);
        links.sent(third, one);
        assert_eq!(links.mend(number), 1);
    }
}
