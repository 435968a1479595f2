//! Elliptic curves and their two spellings.

/// A named elliptic curve. `x25519` and `x448` are groups, not curves of this table: no certificate holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Curve(u8);

struct Row {
    /// Standard short name, printed in all suite names except those of `wtls`.
    name: &'static str,
    /// The original short name, printed in suite names of `wtls`.
    wtls_name: Option<&'static str>,
    wtls_number: Option<u8>,
    /// OpenSSL's name. (Its `wap-wsg-idm-ecid-wtls7` is secp160r2, not the specification's curve 7.)
    openssl: &'static str,
    field_bits: u16,
    /// IANA "TLS Supported Groups" number (RFC 8422, RFC 4492).
    tls_group: Option<u16>,
}

const fn row(
    name: &'static str,
    wtls_name: Option<&'static str>,
    wtls_number: Option<u8>,
    openssl: &'static str,
    field_bits: u16,
    tls_group: Option<u16>,
) -> Row {
    Row { name, wtls_name, wtls_number, openssl, field_bits, tls_group }
}

const TABLE: [Row; 34] = [
    row("p192", None, None, "prime192v1", 192, Some(19)),
    row("p224", Some("224p"), Some(12), "secp224r1", 224, Some(21)),
    row("p256", Some("256p"), None, "prime256v1", 256, Some(23)),
    row("p384", None, None, "secp384r1", 384, Some(24)),
    row("p521", None, None, "secp521r1", 521, Some(25)),
    row("secp160k1", None, None, "secp160k1", 160, Some(15)),
    row("secp160r1", Some("160p"), Some(7), "secp160r1", 160, Some(16)),
    row("secp160r2", None, None, "secp160r2", 160, Some(17)),
    row("secp192k1", None, None, "secp192k1", 192, Some(18)),
    row("secp224k1", None, None, "secp224k1", 224, Some(20)),
    row("secp256k1", None, None, "secp256k1", 256, Some(22)),
    row("brainpoolp256r1", None, None, "brainpoolP256r1", 256, Some(26)),
    row("brainpoolp384r1", None, None, "brainpoolP384r1", 384, Some(27)),
    row("brainpoolp512r1", None, None, "brainpoolP512r1", 512, Some(28)),
    row("sect163k1", Some("163k"), Some(3), "sect163k1", 163, Some(1)),
    row("sect163r1", None, None, "sect163r1", 163, Some(2)),
    row("sect163r2", Some("163r"), None, "sect163r2", 163, Some(3)),
    row("sect193r1", None, None, "sect193r1", 193, Some(4)),
    row("sect193r2", None, None, "sect193r2", 193, Some(5)),
    row("sect233k1", Some("233k"), Some(10), "sect233k1", 233, Some(6)),
    row("sect233r1", Some("233r"), Some(11), "sect233r1", 233, Some(7)),
    row("sect239k1", None, None, "sect239k1", 239, Some(8)),
    row("sect283k1", Some("283k"), None, "sect283k1", 283, Some(9)),
    row("sect283r1", Some("283r"), None, "sect283r1", 283, Some(10)),
    row("sect409k1", None, None, "sect409k1", 409, Some(11)),
    row("sect409r1", None, None, "sect409r1", 409, Some(12)),
    row("sect571k1", None, None, "sect571k1", 571, Some(13)),
    row("sect571r1", None, None, "sect571r1", 571, Some(14)),
    row("wtls1", Some("wtls1"), Some(1), "wap-wsg-idm-ecid-wtls1", 113, None),
    row("sect113r1", Some("wtls4"), Some(4), "sect113r1", 113, None),
    row("c2pnb163v1", Some("wtls5"), Some(5), "c2pnb163v1", 163, None),
    row("secp112r1", Some("wtls6"), Some(6), "secp112r1", 112, None),
    row("wtls8", Some("wtls8"), Some(8), "wap-wsg-idm-ecid-wtls8", 112, None),
    row("wtls9", Some("wtls9"), Some(9), "wap-wsg-idm-ecid-wtls9", 160, None),
];

impl Curve {
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(|index| Self(u8::try_from(index).unwrap_or(u8::MAX)))
    }

    /// Finds a curve by either spelling: `sect163k1`, `163k` or `wtls3`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|curve| {
            let row = curve.row();
            let number = || name.strip_prefix("wtls").and_then(|digits| digits.parse().ok());
            name == row.name
                || Some(name) == row.wtls_name
                || (row.wtls_number.is_some() && row.wtls_number == number())
        })
    }

    pub fn from_openssl(name: &str) -> Option<Self> {
        let name = if name == "secp256r1" { "prime256v1" } else { name };
        Self::all().find(|curve| curve.row().openssl.eq_ignore_ascii_case(name))
    }

    /// Finds a curve by its number in the WTLS specification (WAP-261, table 8).
    pub fn from_wtls_number(number: u8) -> Option<Self> {
        Self::all().find(|curve| curve.row().wtls_number == Some(number))
    }

    fn row(self) -> &'static Row {
        &TABLE[self.0 as usize]
    }

    /// Standard short name (`sect163k1`), used everywhere except in WTLS suite names.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Name under `wtls` (`163k`); `None` if WTLS does not use the curve.
    pub fn wtls_name(self) -> Option<&'static str> {
        self.row().wtls_name
    }

    /// Number in the WTLS specification; `None` for curves that are sent as explicit parameters.
    pub fn wtls_number(self) -> Option<u8> {
        self.row().wtls_number
    }

    pub fn openssl_name(self) -> &'static str {
        self.row().openssl
    }

    pub fn field_bits(self) -> u16 {
        self.row().field_bits
    }

    /// Number in IANA's "TLS Supported Groups".
    pub fn tls_group(self) -> Option<u16> {
        self.row().tls_group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_curve_names_find_the_same_curve() {
        for (one, other) in [
            ("160p", "secp160r1"),
            ("163k", "wtls3"),
            ("wtls7", "160p"),
            ("233r", "sect233r1"),
            ("wtls12", "p224"),
        ] {
            assert_eq!(Curve::from_name(one), Curve::from_name(other));
            assert!(Curve::from_name(one).is_some(), "{one}");
        }
        assert_eq!(Curve::from_name("wtls2"), None);
    }
}
