//! The certificate of a process for connections between nodes, from its start on.
//!
//! Owns: that a process starts only with a certificate for its name, its roles and its cell. Must never: hold what
//! a certificate means. Next: `../mesh/tls/`.

use crate::clock::SharedClock;
use crate::mesh::Roles;
use crate::mesh::tls::{MeshTls, TlsFiles};
use crate::net::rt;
use crate::process::exit;
use crate::process::serve::Refused;
use fencepost_core::limits::CERTIFICATE_WARN_DAYS;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use std::sync::Arc;

fn refused(code: &'static str, detail: String, hint: String) -> Refused {
    let refusal = Refusal::new(RefusalKind::Forbidden, code, detail, hint);
    Refused::of(exit::LISTEN_REFUSED, &refusal)
}

/// Reads it, and looks for new files from then on.
///
/// # Errors
/// It is no good, or not this process's.
pub(super) fn load(
    files: Option<&TlsFiles>,
    (node, roles): (&Name, Roles),
    clock: &SharedClock,
) -> Result<Option<Arc<MeshTls>>, Refused> {
    let Some(files) = files else { return Ok(None) };
    let loaded = MeshTls::load(files.clone(), clock.clone());
    let tls = Arc::new(loaded.map_err(|refusal| Refused::of(exit::LISTEN_REFUSED, &refusal))?);
    let kit = tls.kit();
    let held = kit.identity();
    if held.node != *node {
        return Err(refused(
            "mesh_certificate_node",
            format!("This node is {node}, its certificate is for {}.", held.node),
            format!("start it with --node {}, or make a certificate for {node}", held.node),
        ));
    }
    if !held.roles.has_all(roles) {
        return Err(refused(
            "mesh_certificate_roles",
            format!(
                "This node has the roles {roles}, its certificate allows {}.",
                held.roles
            ),
            format!("make it anew with --roles {roles}"),
        ));
    }
    let days = kit.days_left(clock);
    if days < CERTIFICATE_WARN_DAYS {
        tracing::warn!(days, "the certificate for connections between nodes ends soon");
    }
    let watched = tls.clone();
    rt::spawn(async move { watched.watch().await });
    Ok(Some(tls))
}

/// Refuses a store of another cell than the certificate's.
///
/// # Errors
/// They differ.
pub(super) fn check_cell(tls: Option<&Arc<MeshTls>>, cell: u128) -> Result<(), Refused> {
    let named = tls.map(|tls| tls.kit().identity().cell);
    match named.filter(|named| *named != cell) {
        None => Ok(()),
        Some(named) => Err(refused(
            "mesh_certificate_cell",
            format!("The store is of cell {cell:032x}, the certificate is for cell {named:032x}."),
            format!(
                "make a CA for it: fencepost certs ca --cell {cell:032x} --out FOLDER; then certificates from that"
            ),
        )),
    }
}
