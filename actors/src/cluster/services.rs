//! What a node that owns shards offers to others.
//!
//! Owns: the list. Must never: hold one of them. Next: `route.rs` (requests), `work.rs` (reports and orders).

use crate::cluster::far_workers::ReportService;
use crate::cluster::near_workers::OrderService;
use crate::cluster::route::RequestService;
use crate::mesh::Service;
use crate::mesh::envelope::{ORDERS, REPORTS, REQUESTS, ServiceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The services of a node; they answer "not here" until its parts are there.
#[derive(Clone, Default)]
pub struct NodeServices {
    /// Requests of other gateways.
    pub requests: Arc<RequestService>,
    /// What workers elsewhere say to shards here.
    pub reports: Arc<ReportService>,
    /// What shards elsewhere say to workers here.
    pub orders: Arc<OrderService>,
}

impl NodeServices {
    /// All of them, for the node's connections.
    pub fn all(&self) -> BTreeMap<ServiceId, Arc<dyn Service>> {
        BTreeMap::from([
            (REQUESTS, self.requests.clone() as Arc<dyn Service>),
            (REPORTS, self.reports.clone()),
            (ORDERS, self.orders.clone()),
        ])
    }

    /// Those of a node that only works.
    pub fn of_worker(&self) -> BTreeMap<ServiceId, Arc<dyn Service>> {
        BTreeMap::from([(ORDERS, self.orders.clone() as Arc<dyn Service>)])
    }
}
