//! Which part of a cell a process is: roles, addresses and certificates that must go together.
//!
//! Owns: these checks between settings. Must never: know how a part is run. Next: `crate::process::roles`.

use super::kind::Kind;
use super::mistake::{Mistake, Place, Wrong};
use super::resolve::Effective;
use super::table::{
    API_LISTEN, DATA, DATA_DEFAULT, MESH_ADVERTISE, MESH_CA, MESH_CERT, MESH_KEY, MESH_LISTEN, MESH_SECRET_FILE,
    MESH_SHARD_LEASE, MESH_STORE_AT, ROLES, Setting,
};
use crate::api::guard::check_listen;
use crate::mesh::tls::TlsFiles;
use crate::process::roles::SECRET_FILE;
use crate::process::serve::{MeshPlace, Part};
use fencepost_core::limits::NODE_ADDRESS_BYTES_MAX;
use std::net::SocketAddr;
use std::path::PathBuf;

/// In order of the words.
const WITHOUT_STORE: [&str; 4] = ["coordinator", "gateway", "scheduler", "worker"];
/// The same without a worker.
const WITHOUT_WORK: [&str; 3] = ["coordinator", "gateway", "scheduler"];

/// Whether it runs attempts. A process that is told no roles, as `dev`, has all of them.
pub fn has_worker(settings: &Effective) -> bool {
    let roles = settings.words(&ROLES);
    roles.is_empty() || roles.iter().any(|role| matches!(*role, "all" | "worker"))
}

/// Which part it is.
///
/// # Errors
/// Roles and addresses do not go together, or others could reach it without certificates.
pub fn check_part(settings: &Effective) -> Result<Part, Mistake> {
    let part = part_of(settings)?;
    let is_secured = check_certificates(settings)?.is_some();
    check_advertised(settings, &part)?;
    match &part {
        Part::Store(listen, _) | Part::WithoutStore(.., MeshPlace { listen, .. })
            if !is_secured && !listen.ip().is_loopback() =>
        {
            let detail = format!("Without certificates a node listens for others on loopback only, not on {listen}.");
            let hint = "Make certificates with fencepost certs, and name them with --mesh-ca, --mesh-cert and \
                        --mesh-key (mesh.ca, mesh.cert and mesh.key in a file); or listen on 127.0.0.1.";
            Err(mistake(
                settings,
                &MESH_LISTEN,
                Wrong::new("mesh_without_certificates", detail, hint),
            ))
        }
        Part::WithoutStore(
            ..,
            MeshPlace {
                listen,
                advertise: None,
            },
        ) if listen.ip().is_unspecified() => {
            let detail = format!("Other nodes are told to come to {listen}, and cannot.");
            let hint = "Name the address that they reach this node at, here or with --mesh-advertise (mesh.advertise in a \
                        file).";
            Err(mistake(
                settings,
                &MESH_LISTEN,
                Wrong::new("mesh_address_unspecified", detail, hint),
            ))
        }
        Part::Whole | Part::Store(..) | Part::WithoutStore(..) | Part::Worker(..) => Ok(part),
    }
}

/// Others can come to the address that they are told, and are told of one only where they come.
fn check_advertised(settings: &Effective, part: &Part) -> Result<(), Mistake> {
    let Some(address) = settings.text(&MESH_ADVERTISE) else {
        return Ok(());
    };
    let refused = |code, detail: String, hint: &str| {
        let wrong = Wrong::new(code, detail, hint);
        Err(mistake(settings, &MESH_ADVERTISE, wrong))
    };
    if !matches!(part, Part::WithoutStore(..)) {
        let detail = "Nobody is told of this address: a store is found by its nodes' mesh.store_at, and a node that only \
                      works is not reached.";
        let hint = "Leave it out, or give this process the roles scheduler,gateway,coordinator.";
        return refused("mesh_advertise_unused", detail.to_owned(), hint);
    }
    if address.len() > NODE_ADDRESS_BYTES_MAX {
        let detail = format!("The address has more than {NODE_ADDRESS_BYTES_MAX} bytes.");
        return refused("mesh_address_too_long", detail, "Use a shorter name.");
    }
    let is_nowhere = match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_unspecified() || address.port() == 0,
        Err(_) => address.ends_with(":0"),
    };
    if is_nowhere {
        let detail = format!("Other nodes are told to come to {address}, and cannot.");
        let hint = "Name the host and the port that they reach this node at, such as node-1.example:4482.";
        return refused("mesh_address_unspecified", detail, hint);
    }
    Ok(())
}

/// The files of its certificate, all of them or none.
///
/// # Errors
/// Some are named and some are not.
pub fn check_certificates(settings: &Effective) -> Result<Option<TlsFiles>, Mistake> {
    let all = [&MESH_CA, &MESH_CERT, &MESH_KEY];
    let paths = all.map(|setting| settings.path(setting));
    let missing = all.into_iter().find(|setting| settings.path(setting).is_none());
    match (paths, missing) {
        ([Some(ca), Some(cert), Some(key)], _) => Ok(Some(TlsFiles { ca, cert, key })),
        ([None, None, None], _) | (_, None) => Ok(None),
        (_, Some(missing)) => {
            let given = all
                .into_iter()
                .find(|setting| settings.path(setting).is_some())
                .unwrap_or(missing);
            let place = settings.place(given);
            let detail = format!(
                "{} is missing: the three files belong together.",
                place.name_of(missing)
            );
            let hint = "Name ca.pem, node.pem and node-key.pem of a folder that fencepost certs node made.";
            Err(mistake(
                settings,
                given,
                Wrong::new("mesh_certificates_incomplete", detail, hint),
            ))
        }
    }
}

/// Whether the API would listen where it is told to; a start finds out itself, and has a code of its own for it.
///
/// # Errors
/// The address is not loopback.
pub fn check_api(settings: &Effective) -> Result<(), Mistake> {
    let Some(listen) = settings.address(&API_LISTEN) else {
        return Ok(());
    };
    check_listen(listen).map_err(|refusal| {
        mistake(
            settings,
            &API_LISTEN,
            Wrong::new(refusal.code, refusal.detail, refusal.hint),
        )
    })
}

fn mistake(settings: &Effective, setting: &Setting, wrong: Wrong) -> Mistake {
    let place = settings.place(setting).clone();
    Mistake {
        field: place.name_of(setting),
        place,
        wrong,
    }
}

fn part_of(settings: &Effective) -> Result<Part, Mistake> {
    let mut roles = settings.words(&ROLES);
    roles.sort_unstable();
    roles.dedup();
    let listen = settings.address(&MESH_LISTEN);
    let store_at = settings.text(&MESH_STORE_AT);
    match (roles.as_slice(), listen, store_at) {
        (["all"], None, None) => Ok(Part::Whole),
        (["store"], Some(listen), None) => {
            let lease = settings
                .span(&MESH_SHARD_LEASE)
                .expect("the table has a default, and a test reads every one");
            Ok(Part::Store(listen, lease))
        }
        (["store"], None, _) => Err(wrong(settings, &MESH_LISTEN, "The store role serves other nodes.")),
        (roles, listen, Some(address)) if roles == WITHOUT_STORE || roles == WITHOUT_WORK => {
            let place = MeshPlace {
                listen: listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))),
                advertise: settings.text(&MESH_ADVERTISE).map(str::to_owned),
            };
            Ok(Part::WithoutStore(address.to_owned(), secret_file(settings), place))
        }
        (["worker"], None, Some(address)) => Ok(Part::Worker(address.to_owned(), secret_file(settings))),
        (["worker"], Some(_), _) => Err(unwanted(
            settings,
            &MESH_LISTEN,
            "A node that only works reaches the others, and is not reached by them.",
        )),
        (["store"], _, Some(_)) => Err(unwanted(
            settings,
            &MESH_STORE_AT,
            "A process with the store role has the store itself.",
        )),
        (roles, None, None) if roles == WITHOUT_STORE || roles == WITHOUT_WORK || roles == ["worker"] => Err(wrong(
            settings,
            &MESH_STORE_AT,
            "These roles need a store on another node.",
        )),
        (roles, ..) if !is_a_part(roles) => {
            let detail = format!("There is no process with the roles {} and no others.", roles.join(", "));
            Err(wrong(settings, &ROLES, &detail))
        }
        _ => Err(wrong(settings, &ROLES, "These roles and addresses do not go together.")),
    }
}

/// Whether a process may have just these roles, sorted.
fn is_a_part(roles: &[&str]) -> bool {
    roles == WITHOUT_STORE || roles == WITHOUT_WORK || matches!(roles, ["all"] | ["store"] | ["worker"])
}

/// Told where it was said.
fn unwanted(settings: &Effective, setting: &Setting, detail: &str) -> Mistake {
    let hint = format!("Leave {} out.", settings.place(setting).name_of(setting));
    mistake(settings, setting, Wrong::new("roles_invalid", detail, hint))
}

fn secret_file(settings: &Effective) -> PathBuf {
    let folder = settings.path(&DATA).unwrap_or_else(|| PathBuf::from(DATA_DEFAULT));
    let usual = || folder.join(SECRET_FILE);
    settings.path(&MESH_SECRET_FILE).unwrap_or_else(usual)
}

/// Told where the roles were said; where nobody said them, where the addresses were.
fn wrong(settings: &Effective, setting: &Setting, detail: &str) -> Mistake {
    let said = [&ROLES, &MESH_LISTEN, &MESH_STORE_AT].map(|setting| settings.place(setting));
    let place = said.into_iter().find(|place| **place != Place::Default);
    let place = place.unwrap_or(&Place::Default).clone();
    let name = place.name_of(setting);
    let hint = match setting.kind {
        Kind::List(_) => format!(
            "Use all; or store with {}; or scheduler,gateway,coordinator, with worker or without, or worker alone, \
             with {}.",
            place.name_of(&MESH_LISTEN),
            place.name_of(&MESH_STORE_AT)
        ),
        _ if name.starts_with('-') => format!("Say where: {name} 127.0.0.1:4481."),
        _ => format!("Say where: {name} = \"127.0.0.1:4481\"."),
    };
    Mistake {
        field: name,
        place,
        wrong: Wrong::new("roles_invalid", detail, hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolve::{Given, Layers, resolve};

    #[test]
    fn who_is_told_no_roles_works() {
        let works = |is_dev, roles: Option<&str>| {
            let env = |name: &str| match name {
                "FENCEPOST_ROLES" => roles.map(Into::into),
                "FENCEPOST_STORE_AT" => roles.map(|_| "127.0.0.1:4481".into()),
                "FENCEPOST_MESH_LISTEN" => roles
                    .filter(|roles| *roles != "worker")
                    .map(|_| "127.0.0.1:4482".into()),
                _ => None,
            };
            let layers = Layers {
                flags: &Given::default(),
                env: &env,
                file: None,
                is_dev,
            };
            has_worker(&resolve(&layers).expect("settings"))
        };
        assert!(works(true, None), "dev knows no roles");
        assert!(works(false, None));
        assert!(works(false, Some("worker")));
        assert!(!works(false, Some("scheduler,gateway,coordinator")));
    }
}
