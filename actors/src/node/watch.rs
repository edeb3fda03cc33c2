//! A node that looks after itself: how its store and its shards are, every second for as long as it lives.
//!
//! Owns: readiness after the start, with its reasons. Must never: act on what it sees; shards open and
//! renew by themselves. Next: `gateway.rs` (what is asked), `../shell/away.rs`.

use crate::net::rt;
use crate::node::gateway::NodeGateway;
use crate::node::notes::Notes;
use fencepost_core::limits::NODE_WATCH_MS;
use fencepost_core::time::Span;
use std::sync::Arc;

const PAUSE: Span = Span::from_millis(NODE_WATCH_MS);

/// Looks every second, for as long as the gateway lives.
pub(super) fn watch(gateway: &Arc<NodeGateway>, notes: Arc<dyn Notes>) {
    let (weak, clock) = (Arc::downgrade(gateway), gateway.clock.clone());
    rt::spawn(async move {
        loop {
            let Some(looking) = weak.upgrade().map(|gateway| gateway.look()) else {
                return;
            };
            let seen = looking.await;
            let Some(gateway) = weak.upgrade() else { return };
            gateway.learn(seen);
            notes.clock_doubt(gateway.stated().doubt);
            drop(gateway);
            clock.sleep(PAUSE).await;
        }
    });
}

impl NodeGateway {
    /// The same in one line, for a service manager.
    #[cfg(not(madsim))]
    pub(crate) fn state_in_words(&self) -> String {
        match self.why_not_ready() {
            reasons if reasons.is_empty() => "ready".to_owned(),
            reasons => reasons.join("; "),
        }
    }

    /// Why the node is not ready, for people; empty when it is.
    pub(super) fn why_not_ready(&self) -> Vec<String> {
        if self.is_draining() {
            return vec!["draining".to_owned()];
        }
        let of_node = self.last_probes().into_iter().zip(self.map.shards());
        let (probes, shards): (Vec<_>, Vec<_>) = of_node.filter(|(_, shard)| self.is_here(*shard)).unzip();
        let count = probes.len();
        let open = probes.iter().filter(|probe| probe.open).count();
        let away = probes.iter().filter(|probe| probe.away).count();
        let mut reasons = Vec::new();
        if !self.is_started() {
            reasons.push(format!("starting: {open} of {count} shards are open"));
        } else if open < probes.len() {
            reasons.push(format!("{open} of {count} shards are open"));
        }
        if !self.hears_store() {
            reasons.push("the store does not answer".to_owned());
        } else if away > 0 {
            reasons.push(format!("{away} of {count} shards wait for the store"));
        }
        let shut = probes.iter().zip(shards).filter(|(probe, _)| !probe.open);
        reasons.extend(shut.filter_map(|(probe, shard)| {
            let why = probe.refused?;
            Some(format!("shard {} {why}; the log says more", shard.0))
        }));
        reasons
    }
}
