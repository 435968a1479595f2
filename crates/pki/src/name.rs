//! Readable names of certificates.

use openssl::nid::Nid;
use openssl::x509::{X509NameRef, X509Ref};

/// `C=…, O=…, CN=…` in the certificate's order, control characters escaped.
pub(crate) fn text(name: &X509NameRef) -> String {
    let attributes: Vec<String> = name
        .entries()
        .map(|entry| {
            let attribute = entry.object().nid().short_name().unwrap_or("?").to_owned();
            // OpenSSL converts values in other encodings to text.
            let value = entry.data().to_string().unwrap_or_else(|_| "(not a text)".into());
            format!("{attribute}={}", printable(&value))
        })
        .collect();
    if attributes.is_empty() { "(empty)".into() } else { attributes.join(", ") }
}

/// The common name of a certificate's subject, or else its whole name.
pub(crate) fn short(certificate: &X509Ref) -> String {
    common_name(certificate).map_or_else(|| text(certificate.subject_name()), |value| printable(&value))
}

/// Escapes control characters: names come from untrusted files and are printed on terminals.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            printable.extend(letter.escape_default());
        } else {
            printable.push(letter);
        }
    }
    printable
}

fn common_name(certificate: &X509Ref) -> Option<String> {
    let mut entries = certificate.subject_name().entries_by_nid(Nid::COMMONNAME);
    entries.next().and_then(|entry| entry.data().to_string().ok())
}

/// DNS name that a peer checks: the first in the certificate (a wildcard is replaced by `host`), or else the
/// common name; `None` if there is neither.
pub(crate) fn host(certificate: &X509Ref) -> Option<String> {
    let names = certificate.subject_alt_names();
    let first = names.iter().flatten().find_map(|name| name.dnsname().map(str::to_owned));
    let name = first.or_else(|| common_name(certificate))?;
    Some(name.strip_prefix("*.").map_or(name.clone(), |domain| format!("host.{domain}")))
}
