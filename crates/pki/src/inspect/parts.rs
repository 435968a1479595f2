//! The sizes of a certificate's parts.

use crate::ffi;
use crate::name;
use openssl::asn1::{Asn1Object, Asn1OctetString};
use openssl::x509::X509Extension;
use serde::Serialize;
use x509_cert::der::{self, Decode, Encode, Header, Reader, SliceReader, Tag, asn1::ObjectIdentifier};

/// A part of a certificate, including its tag and length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    pub name: String,
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// OpenSSL's name, or else the object identifier.
    pub name: String,
    pub oid: String,
    /// Whether a peer that does not know it must reject the certificate.
    pub critical: bool,
    /// Whether OpenSSL's verification supports it.
    pub is_understood: bool,
    /// Including tags and lengths.
    pub bytes: usize,
    /// As OpenSSL prints it, in one line; its length if OpenSSL cannot print it.
    pub value: String,
}

struct Piece<'a> {
    tag: Tag,
    bytes: usize,
    content: &'a [u8],
}

/// The consecutive DER values.
fn pieces(bytes: &[u8]) -> der::Result<Vec<Piece<'_>>> {
    let mut reader = SliceReader::new(bytes)?;
    let mut pieces = Vec::new();
    while !reader.is_finished() {
        let header = Header::decode(&mut reader)?;
        let content = reader.read_slice(header.length())?;
        let length = (header.encoded_len()? + header.length())?;
        pieces.push(Piece { tag: header.tag(), bytes: usize::try_from(length)?, content });
    }
    Ok(pieces)
}

/// The parts of a certificate, which sum to its length, and its extensions one by one.
///
/// `None` if it is not DER: OpenSSL also accepts other encodings.
pub(super) fn parts(certificate: &[u8]) -> Option<(Vec<Part>, Vec<Extension>)> {
    walk(certificate).ok().flatten()
}

fn walk(certificate: &[u8]) -> der::Result<Option<(Vec<Part>, Vec<Extension>)>> {
    let [outer] = &pieces(certificate)?[..] else { return Ok(None) };
    let outer_pieces = pieces(outer.content)?;
    let [signed, outer_algorithm, signature] = &outer_pieces[..] else { return Ok(None) };
    let fields = pieces(signed.content)?;

    let mut parts = Vec::new();
    let mut extensions = Vec::new();
    let mut wrapping = outer.bytes - outer.content.len() + signed.bytes - signed.content.len();
    let mut add = |name: &str, bytes: usize| parts.push(Part { name: name.into(), bytes });
    // Certificates of version 1 contain no version; the other fields have a fixed order (RFC 5280, section 4.1).
    let names =
        ["serial number", "signature algorithm (signed)", "issuer", "validity", "subject", "public key"];
    let mut plain = names.iter();
    for field in &fields {
        if !field.tag.is_context_specific() {
            let Some(name) = plain.next() else { return Ok(None) };
            add(name, field.bytes);
            continue;
        }
        match field.tag.number().value() {
            0 => add("version", field.bytes),
            3 => {
                let [list] = &pieces(field.content)?[..] else { return Ok(None) };
                wrapping += field.bytes - list.content.len();
                for piece in pieces(list.content)? {
                    let Some(extension) = extension(&piece)? else { return Ok(None) };
                    add(&format!("extension {}", extension.name), extension.bytes);
                    extensions.push(extension);
                }
            }
            _ => add("unique identifier", field.bytes),
        }
    }
    add("signature algorithm", outer_algorithm.bytes);
    add("signature", signature.bytes);
    add("wrapping", wrapping);
    Ok(Some((parts, extensions)))
}

fn extension(piece: &Piece<'_>) -> der::Result<Option<Extension>> {
    let fields = pieces(piece.content)?;
    let (oid, critical, value) = match &fields[..] {
        [oid, value] => (oid, false, value),
        [oid, critical, value] => (oid, critical.content.first().is_some_and(|byte| *byte != 0), value),
        _ => return Ok(None),
    };
    if oid.tag != Tag::ObjectIdentifier || value.tag != Tag::OctetString {
        return Ok(None);
    }
    let oid = ObjectIdentifier::from_bytes(oid.content).map_err(|_| der::ErrorKind::Failed)?.to_string();
    let object = Asn1Object::from_str(&oid).ok();
    let long_name = object.as_ref().and_then(|object| object.nid().long_name().ok());
    let made = object.as_ref().and_then(|object| {
        let value = Asn1OctetString::new_from_bytes(value.content).ok()?;
        X509Extension::new_from_der(object, critical, &value).ok()
    });
    Ok(Some(Extension {
        name: long_name.filter(|name| *name != "undefined").map_or_else(|| oid.clone(), str::to_owned),
        value: made.as_ref().and_then(readable).unwrap_or_else(|| format!("{} bytes", value.content.len())),
        is_understood: made.as_ref().is_some_and(ffi::is_supported),
        oid,
        critical,
        bytes: piece.bytes,
    }))
}

/// The value of an extension in one line; `None` if OpenSSL cannot print it.
fn readable(extension: &X509Extension) -> Option<String> {
    let printed = ffi::print_extension(extension)?;
    let lines: Vec<_> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Some(name::printable(&lines.join("; ")))
}
