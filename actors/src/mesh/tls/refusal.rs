//! Why a connection under certificates was not made, as stable codes with a next step.
//!
//! Owns: the one translation of what the TLS library says. Must never: show its names. Next:
//! `../greeting.rs` (the other codes).

use crate::mesh::greeting::RefusedGreeting;
use crate::mesh::wire::WireError;
use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// Which end speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Listener,
}

/// A certificate that names nobody.
pub(super) fn no_identity() -> RefusedGreeting {
    RefusedGreeting::new(
        "certificate-invalid",
        "the other side's certificate names no node of a cell: make it with 'fencepost certs node'",
    )
}

/// What a stream that ended after its handshake was told.
pub(in crate::mesh) fn told_by(error: &io::Error) -> Option<RefusedGreeting> {
    let inner = error.get_ref()?.downcast_ref::<Error>()?;
    let (code, why) = meaning(inner, Side::Dialer)?;
    Some(RefusedGreeting::new(code, why))
}

/// What a failed handshake means.
pub(super) fn refused_by(error: io::Error, side: Side) -> WireError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner.and_then(|inner| meaning(inner, side)) {
        Some((code, why)) => RefusedGreeting::new(code, why).into(),
        None => error.into(),
    }
}

const MAKE: &str = "make it a new one with 'fencepost certs node'";

fn meaning(error: &Error, side: Side) -> Option<(&'static str, String)> {
    Some(match error {
        Error::InvalidCertificate(wrong) => {
            let why = format!("the other side's certificate is refused: {}: {MAKE}", reason(error));
            (code_of(wrong), why)
        }
        Error::NoCertificatesPresented => (
            "certificate-missing",
            format!("the other side shows no certificate: {MAKE}"),
        ),
        Error::PeerIncompatible(_) => (
            "tls-version",
            "the other side does not speak TLS 1.3 as nodes do: see that it is a Fencepost node of this version"
                .to_owned(),
        ),
        Error::InvalidMessage(_) if side == Side::Dialer => (
            "tls-not-served",
            "the other side does not speak TLS: start both nodes with certificates or both without".to_owned(),
        ),
        Error::AlertReceived(alert) => alerted(*alert),
        Error::InvalidMessage(_)
        | Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => (
            "tls-failed",
            "what the other side sends is no TLS handshake of a node".to_owned(),
        ),
        _ => return None,
    })
}

/// What the other side says of us before it hangs up.
pub(super) fn alerted(alert: AlertDescription) -> (&'static str, String) {
    let why = match alert {
        AlertDescription::UnknownCA => "it does not know the CA of this node's certificate",
        AlertDescription::CertificateExpired => "this node's certificate has ended, by its clock",
        AlertDescription::CertificateRequired => "it asks for a certificate",
        AlertDescription::ProtocolVersion => "it does not speak TLS 1.3",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => "it does not take this node's certificate",
        _ => {
            return (
                "tls-failed",
                "the other side broke the TLS handshake off: see its log".to_owned(),
            );
        }
    };
    let next = "see its log, and 'fencepost certs show' for both certificates";
    (
        "certificate-refused",
        format!("the other side refused this node: {why}: {next}"),
    )
}

fn code_of(wrong: &CertificateError) -> &'static str {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate-expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "certificate-not-yet-valid",
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "certificate-unknown-ca",
        _ => "certificate-invalid",
    }
}

/// Why a certificate is no good, in a few words.
pub(super) fn reason(error: &Error) -> &'static str {
    let Error::InvalidCertificate(wrong) = error else {
        return "it cannot be checked";
    };
    match wrong {
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not meant for both ends of a connection"
        }
        CertificateError::BadEncoding => "it is damaged",
        wrong => match code_of(wrong) {
            "certificate-expired" => "its time is over",
            "certificate-not-yet-valid" => "its time has not come",
            "certificate-unknown-ca" => "it was not issued by the CA that is trusted here",
            _ => "it is not one that nodes use",
        },
    }
}
