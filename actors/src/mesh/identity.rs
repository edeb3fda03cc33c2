//! Who a node's certificate says it is: cell, name and roles, as one URI among its alternative names.
//!
//! Owns: that form, and the comparison with what a greeting says. Must never: take a greeting's word where a
//! certificate speaks. Next: `wire.rs` (where it comes from), `tls/`.

use crate::mesh::greeting::RefusedGreeting;
use crate::mesh::{NodeFacts, Roles};
use fencepost_core::name::Name;
use std::fmt;

/// What the URI begins with.
pub const SCHEME: &str = "fencepost://";

/// What a certificate proves of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cell it belongs to.
    pub cell: u128,
    /// Its name there.
    pub node: Name,
    /// What it may do there.
    pub roles: Roles,
}

/// `fencepost://<cell, 32 hex digits>/<node>?roles=<words with commas>`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { cell, node, roles } = self;
        write!(f, "{SCHEME}{cell:032x}/{node}?roles={roles}")
    }
}

impl Identity {
    /// Reads the URI; nothing but its one form is one.
    pub fn parse(uri: &str) -> Option<Identity> {
        let (cell, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (node, roles) = rest.split_once("?roles=")?;
        Some(Identity {
            cell: parse_cell(cell)?,
            node: Name::new(node).ok()?,
            roles: Roles::parse(roles)?,
        })
    }

    /// Refuses a greeting that says another cell, name or role than the certificate that it came with.
    pub fn check(&self, said: &NodeFacts, ours: Option<u128>) -> Result<(), RefusedGreeting> {
        let Identity { cell, node, roles } = self;
        if let Some(ours) = ours.filter(|ours| ours != cell) {
            return Err(RefusedGreeting::new(
                "certificate-other-cell",
                format!(
                    "the certificate of {node} is for cell {cell:032x}, this is cell {ours:032x}: make it with the CA of \
                     this cell"
                ),
            ));
        }
        if said.node != *node {
            return Err(RefusedGreeting::new(
                "certificate-other-node",
                format!(
                    "a node that calls itself {} has the certificate of {node}: give each node a certificate of its \
                     own, with its name",
                    said.node
                ),
            ));
        }
        if !roles.has_all(said.roles) {
            return Err(RefusedGreeting::new(
                "certificate-role",
                format!(
                    "the certificate of {node} allows {roles}, and it wants to be {}: make it anew with these roles",
                    said.roles
                ),
            ));
        }
        Ok(())
    }
}

/// A cell's number as 32 hex digits.
pub fn parse_cell(text: &str) -> Option<u128> {
    let is_hex = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cell: 77,
            node: Name::new("mail-1").unwrap(),
            roles: Roles::STORE.with(Roles::SCHEDULER),
        }
    }

    #[test]
    fn an_identity_reads_back_and_nothing_else_is_one() {
        let uri = identity().to_string();
        assert_eq!(
            uri,
            "fencepost://0000000000000000000000000000004d/mail-1?roles=store,scheduler"
        );
        assert_eq!(Identity::parse(&uri), Some(identity()));
        for odd in [
            "",
            "spiffe://0000000000000000000000000000004d/mail-1?roles=store",
            "fencepost://4d/mail-1?roles=store",
            "fencepost://0000000000000000000000000000004D/mail-1?roles=store",
            "fencepost://+000000000000000000000000000004d/mail-1?roles=store",
            "fencepost://0000000000000000000000000000004d/mail-1",
            "fencepost://0000000000000000000000000000004d/mail-1?roles=",
            "fencepost://0000000000000000000000000000004d/mail-1?roles=store,",
            "fencepost://0000000000000000000000000000004d/mail-1?roles=stores",
            "fencepost://0000000000000000000000000000004d/mail/1?roles=store",
            "fencepost://0000000000000000000000000000004d/mail-1?roles=store&x=1",
        ] {
            assert_eq!(Identity::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_greeting_may_say_less_than_its_certificate_and_nothing_else() {
        let said = |node: &str, roles| NodeFacts {
            node: Name::new(node).unwrap(),
            boot: 1,
            roles,
        };
        let code = |facts: &NodeFacts, cell| identity().check(facts, cell).unwrap_err().code;
        assert_eq!(identity().check(&said("mail-1", Roles::STORE), Some(77)), Ok(()));
        assert_eq!(identity().check(&said("mail-1", identity().roles), None), Ok(()));
        assert_eq!(code(&said("mail-1", Roles::STORE), Some(78)), "certificate-other-cell");
        assert_eq!(code(&said("mail-2", Roles::STORE), Some(77)), "certificate-other-node");
        let more = Roles::STORE.with(Roles::WORKER);
        assert_eq!(code(&said("mail-1", more), Some(77)), "certificate-role");
    }
}
