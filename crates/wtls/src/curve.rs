//! The curves: numbers, names and sizes. The provider implements their arithmetic.

mod data;

use data::{CURVES, CurveData, Field, SIZES};

/// An elliptic curve that the engine supports.
///
/// WTLS numbers 1 and 3 to 12 are the specification's (Table 8). The last four are not in its table. They are sent
/// as explicit parameters, or by private numbers if both sides are configured to use them.
///
/// Number 7 is secp160r1, as the specification prints it; OpenSSL's object named
/// `wap-wsg-idm-ecid-wtls7` is another curve, secp160r2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Curve {
    /// Number 1, over GF(2^113).
    Wtls1,
    /// Number 3, K-163.
    Sect163k1,
    /// Number 4, over GF(2^113).
    Sect113r1,
    /// Number 5, of X9.62; a basic curve.
    C2pnb163v1,
    /// Number 6, over a 112-bit prime.
    Wtls6,
    /// Number 7, over a 160-bit prime; a basic curve.
    Secp160r1,
    /// Number 8, over a 112-bit prime.
    Wtls8,
    /// Number 9, over a 160-bit prime.
    Wtls9,
    /// Number 10, K-233.
    Sect233k1,
    /// Number 11, B-233.
    Sect233r1,
    /// Number 12, P-224.
    Secp224r1,
    /// B-163, without a number.
    Sect163r2,
    /// P-256, without a number.
    Prime256v1,
    /// K-283, without a number.
    Sect283k1,
    /// B-283, without a number.
    Sect283r1,
}

impl Curve {
    /// Every curve, those with a number first.
    pub const ALL: [Self; 15] = [
        Self::Wtls1,
        Self::Sect163k1,
        Self::Sect113r1,
        Self::C2pnb163v1,
        Self::Wtls6,
        Self::Secp160r1,
        Self::Wtls8,
        Self::Wtls9,
        Self::Sect233k1,
        Self::Sect233r1,
        Self::Secp224r1,
        Self::Sect163r2,
        Self::Prime256v1,
        Self::Sect283k1,
        Self::Sect283r1,
    ];

    fn data(self) -> &'static CurveData {
        &CURVES[self as usize]
    }

    pub fn number(self) -> Option<u8> {
        self.data().number
    }

    /// The number that replaces explicit parameters if both sides use private numbers.
    pub fn private_number(self) -> Option<u8> {
        match self {
            Self::Sect163r2 => Some(240),
            Self::Prime256v1 => Some(241),
            Self::Sect283k1 => Some(242),
            Self::Sect283r1 => Some(243),
            _ => None,
        }
    }

    /// The curve with this number, which may be a private one if `private`.
    pub fn from_number(number: u8, private: bool) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| {
            curve.number() == Some(number) || (private && curve.private_number() == Some(number))
        })
    }

    /// The short name: field size and kind (`160p`, `233k`), or `wtls` and the number.
    pub fn short_name(self) -> &'static str {
        self.data().short_name
    }

    /// The name in OpenSSL.
    pub fn standard_name(self) -> &'static str {
        self.data().standard_name
    }

    /// The curve of a short or standard name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.short_name() == name || curve.standard_name() == name)
    }

    /// Size of the field, which is the size that key exchange suites limit.
    pub fn field_bits(self) -> u32 {
        SIZES[self as usize].0
    }

    /// Length of a coordinate, and of the shared secret.
    pub fn field_bytes(self) -> usize {
        self.field_bits().div_ceil(8) as usize
    }

    /// Size of the order of the base point.
    pub fn order_bits(self) -> u32 {
        SIZES[self as usize].1
    }

    /// Length of each half of an ECDSA signature.
    pub fn order_bytes(self) -> usize {
        self.order_bits().div_ceil(8) as usize
    }

    /// The cofactor: 1, 2 or 4.
    pub fn cofactor(self) -> u8 {
        self.data().cofactor
    }

    /// Whether the field is GF(2^m).
    pub fn is_binary(self) -> bool {
        !matches!(self.data().field, Field::Prime { .. })
    }
}

impl core::fmt::Display for Curve {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(self.short_name())
    }
}

pub(crate) use explicit::unhex;
pub use explicit::{EcField, EcParameters};
mod explicit;
