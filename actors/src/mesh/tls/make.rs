//! Making the CA of a cell and the certificates of its nodes.
//!
//! Owns: what stands in them. The CA's certificate holds the cell's number, so that a node's can be made from
//! the CA's two files alone. Must never: read or write a file. Next: `../../cli/certs.rs`.

use super::kit::certificates;
use super::refuse;
use crate::mesh::identity::{Identity, SCHEME, parse_cell};
use base64::Engine as _;
use fencepost_core::refusal::Refusal;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, date_time_ymd,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use std::time::Duration;

/// A certificate and its key, as files hold them.
pub struct Made {
    /// The certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
}

/// From when to when, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// First second.
    pub from: u64,
    /// Last second.
    pub until: u64,
}

impl Validity {
    /// From an hour ago, for clocks that are behind, for so many days from now.
    pub fn days(now: u64, days: u64) -> Validity {
        Validity {
            from: now.saturating_sub(3_600),
            until: now.saturating_add(days.saturating_mul(86_400)),
        }
    }
}

fn failed(error: rcgen::Error) -> Refusal {
    refuse(
        "certificate_not_made",
        format!("The certificate cannot be made: {error}."),
        "Report this as a bug.",
    )
}

fn params(name: &str, uri: String, validity: Validity) -> Result<CertificateParams, Refusal> {
    let mut params = CertificateParams::default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(validity.from);
    params.not_after = epoch + Duration::from_secs(validity.until);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = vec![SanType::URI(uri.try_into().map_err(failed)?)];
    Ok(params)
}

/// The CA of a cell; made again, without its key, when it signs.
fn ca_params(cell: u128, validity: Validity) -> Result<CertificateParams, Refusal> {
    let mut ca = params(
        &format!("Fencepost cell {cell:032x}"),
        format!("{SCHEME}{cell:032x}"),
        validity,
    )?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(ca)
}

/// A CA for a cell.
///
/// # Errors
/// No key could be drawn.
pub fn make_ca(cell: u128, validity: Validity) -> Result<Made, Refusal> {
    let key = KeyPair::generate().map_err(failed)?;
    let cert = ca_params(cell, validity)?.self_signed(&key).map_err(failed)?;
    Ok(made(cert.der(), &key))
}

/// Which cell a CA is for.
///
/// # Errors
/// It is none of ours.
pub fn cell_of_ca(cert: &[u8]) -> Result<u128, Refusal> {
    let named = certificates(cert)?.first().and_then(|der| {
        let parsed = webpki::EndEntityCert::try_from(der).ok()?;
        parsed
            .valid_uri_names()
            .find_map(|uri| parse_cell(uri.strip_prefix(SCHEME)?))
    });
    named.ok_or_else(|| {
        refuse(
            "ca_unfit",
            "The CA's certificate names no cell.",
            "Name a folder that 'fencepost certs ca' made.",
        )
    })
}

/// A certificate for a node, signed by the CA of its cell.
///
/// # Errors
/// The CA's key cannot be used.
pub fn make_node(ca_key: &[u8], identity: &Identity, validity: Validity) -> Result<Made, Refusal> {
    let unfit = || {
        let hint = "Name a folder that 'fencepost certs ca' made.";
        refuse("ca_unfit", "The CA's key cannot be used.", hint)
    };
    let signer = PrivateKeyDer::from_pem_slice(ca_key).map_err(|_| unfit())?;
    let signer = KeyPair::try_from(&signer).map_err(|_| unfit())?;
    let issuer = Issuer::new(ca_params(identity.cell, validity)?, signer);
    let key = KeyPair::generate().map_err(failed)?;
    let mut node = params(identity.node.as_str(), identity.to_string(), validity)?;
    node.is_ca = IsCa::ExplicitNoCa;
    node.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    node.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    node.use_authority_key_identifier_extension = true;
    let cert = node.signed_by(&key, &issuer).map_err(failed)?;
    Ok(made(cert.der(), &key))
}

fn made(cert: &[u8], key: &KeyPair) -> Made {
    Made {
        cert: pem("CERTIFICATE", cert),
        key: pem("PRIVATE KEY", key.serialized_der()),
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = more;
    }
    out + &format!("-----END {label}-----\n")
}
