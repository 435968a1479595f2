//! A certificate in words.

use super::{Certificate, CertifiedKey};
use crate::crypto::KeyKind;

/// What a certificate says, ready to be printed or put into a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Whose certificate it is.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
    /// Begin of validity, in seconds since 1970.
    pub valid_not_before_unix_s: u32,
    /// End of validity.
    pub valid_not_after_unix_s: u32,
    /// What the key is for.
    pub key_type: String,
    /// Its curve or size, or why that is unknown.
    pub key: String,
    /// Size in bits, 0 if unknown.
    pub key_bits: u32,
    /// The key as sent, in hexadecimal.
    pub key_value: String,
    /// How the certificate is signed.
    pub signature_algorithm: String,
    /// The signature, in hexadecimal.
    pub signature: String,
    /// Length of the whole certificate.
    pub bytes: usize,
}

impl Summary {
    /// Describes a certificate. Private curve numbers are named only where they are agreed upon.
    pub fn of(certificate: &Certificate, private_curves: bool) -> Self {
        let fields = certificate.fields();
        let kind = fields.public_key.kind(private_curves);
        let key = match &kind {
            Ok(KeyKind::Ec(curve)) => format!("{curve} ({})", curve.standard_name()),
            Ok(KeyKind::Rsa { bits }) => format!("{bits} bits"),
            Ok(KeyKind::Dh { bits, .. }) => format!("DH, {bits} bits"),
            Err(error) => error.to_string(),
        };
        let key_value = match &fields.public_key {
            CertifiedKey::Rsa(key) => match key.parts() {
                Ok((exponent, modulus)) => format!("e={} n={}", hex(exponent), hex(modulus)),
                Err(error) => error.to_string(),
            },
            CertifiedKey::Ecdh(key) | CertifiedKey::Ecdsa(key) => hex(&key.point),
        };
        Self {
            subject: fields.subject.to_string(),
            issuer: fields.issuer.to_string(),
            valid_not_before_unix_s: fields.valid_not_before_unix_s,
            valid_not_after_unix_s: fields.valid_not_after_unix_s,
            key_type: fields.public_key.key_type().to_string(),
            key,
            key_bits: kind.map_or(0, KeyKind::size_bits),
            key_value,
            signature_algorithm: fields.signature_algorithm.to_string(),
            signature: hex(certificate.signature()),
            bytes: certificate.as_bytes().len(),
        }
    }
}

impl core::fmt::Display for Summary {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(formatter, "WTLS certificate, {} bytes", self.bytes)?;
        writeln!(formatter, "  subject:    {}", self.subject)?;
        writeln!(formatter, "  issuer:     {}", self.issuer)?;
        let (from, to) = (self.valid_not_before_unix_s, self.valid_not_after_unix_s);
        writeln!(formatter, "  valid from: {}", utc(from))?;
        writeln!(formatter, "  valid to:   {}", utc(to))?;
        writeln!(formatter, "  key:        {}, {}", self.key_type, self.key)?;
        writeln!(formatter, "              {}", self.key_value)?;
        writeln!(formatter, "  signature:  {}", self.signature_algorithm)?;
        write!(formatter, "              {}", self.signature)
    }
}

fn hex(bytes: &[u8]) -> String {
    use core::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A point in time as date and time in UTC. The civil calendar repeats every 400 years, or 146,097 days;
/// counting years from March puts the leap day at a year's end.
fn utc(unix_s: u32) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u32::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_the_civil_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(0x3AE5_C2A0), "2001-04-24 18:14:56 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(u32::MAX), "2106-02-07 06:28:15 UTC");
    }
}
