//! Families of public keys, and the one spelling of what is done with them.
//!
//! The middle part of a [`Primitive`], its algorithm, follows from the family of the key and the operation; it is
//! spelt here and nowhere else. An import is named after the family of the key, whatever the key is for and
//! wherever it came from: reading an elliptic-curve key is `import ec`, out of a certificate, a key share or a
//! WTLS parameter alike.

use super::{Curve, Group, KeyType, Protocol};
use crate::operation::{Operation, Primitive, intern};
use crate::spelled;

spelled! {
    /// A family of public keys: those that do the same operations by the same algorithms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum KeyFamily {
        /// RSA, for signatures and for the transport of secrets.
        Rsa = "rsa",
        Dsa = "dsa",
        /// Diffie–Hellman modulo a prime.
        Dh = "dh",
        /// Keys on a curve that sign by ECDSA or agree by ECDH; X25519 and X448 are among them.
        Ec = "ec",
        Edwards = "eddsa",
        MlDsa = "mldsa",
        MlKem = "mlkem",
        /// ML-KEM with a curve; what is done with both is one operation.
        Hybrid = "hybrid",
    }
}

spelled! {
    /// How a curve's arithmetic works; costs grow alike within a family.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CurveFamily {
        /// Short Weierstrass form over a prime field.
        Prime = "prime",
        /// Over a field of characteristic two.
        Binary = "binary",
        /// X25519, X448.
        Montgomery = "montgomery",
        /// Ed25519.
        Edwards = "edwards",
    }
}

impl KeyFamily {
    pub const fn operations(self) -> &'static [Operation] {
        use Operation::{Decapsulate, Decrypt, Derive, Encapsulate, Encrypt, Import, Keygen, Sign, Verify};
        match self {
            Self::Rsa => &[Sign, Verify, Encrypt, Decrypt, Import],
            Self::Dsa | Self::Edwards | Self::MlDsa => &[Sign, Verify, Import],
            Self::Dh => &[Keygen, Derive, Import],
            Self::Ec => &[Sign, Verify, Keygen, Derive, Import],
            Self::MlKem | Self::Hybrid => &[Keygen, Encapsulate, Decapsulate, Import],
        }
    }

    /// The algorithm under which an operation with such keys is counted.
    pub const fn algorithm(self, operation: Operation) -> &'static str {
        match (self, operation) {
            (Self::Ec, Operation::Sign | Operation::Verify) => "ecdsa",
            (Self::Ec, Operation::Derive | Operation::Keygen) => "ecdh",
            (family, _) => family.as_str(),
        }
    }

    /// Names what is done with such a key of the given size, curve or group.
    pub const fn primitive(self, operation: Operation, parameters: &'static str) -> Primitive {
        Primitive::new(operation, self.algorithm(operation), parameters)
    }
}

impl Curve {
    /// How its arithmetic works.
    pub fn family(self) -> CurveFamily {
        let name = self.openssl_name();
        // Curves 1, 4 and 5 of WTLS and the sect and c2pnb ones; its curve 3 and beyond are among those.
        let binary = ["sect", "c2pnb"].iter().any(|start| name.starts_with(start)) || name.ends_with("wtls1");
        if binary { CurveFamily::Binary } else { CurveFamily::Prime }
    }
}

impl KeyType {
    pub fn family(self) -> KeyFamily {
        match self {
            Self::Rsa { .. } => KeyFamily::Rsa,
            Self::Dsa(_) => KeyFamily::Dsa,
            Self::Ec(_) => KeyFamily::Ec,
            Self::Ed25519 => KeyFamily::Edwards,
            Self::MlDsa(_) => KeyFamily::MlDsa,
        }
    }

    /// Which kind of curve it is on, if on any.
    pub fn curve_family(self) -> Option<CurveFamily> {
        match self {
            Self::Ec(curve) => Some(curve.family()),
            Self::Ed25519 => Some(CurveFamily::Edwards),
            Self::Rsa { .. } | Self::Dsa(_) | Self::MlDsa(_) => None,
        }
    }

    pub fn primitive(self, operation: Operation) -> Primitive {
        self.family().primitive(operation, self.standard_name())
    }
}

impl Group {
    pub fn family(self) -> KeyFamily {
        match self {
            Self::Dh(_) | Self::Ffdhe(_) => KeyFamily::Dh,
            Self::X25519 | Self::X448 | Self::Curve(_) => KeyFamily::Ec,
            Self::MlKem(_) => KeyFamily::MlKem,
            Self::X25519MlKem768 | Self::Secp256r1MlKem768 => KeyFamily::Hybrid,
        }
    }

    /// Which kind of curve it is, if one; of a hybrid, that of its curve.
    pub fn curve_family(self) -> Option<CurveFamily> {
        match self {
            Self::Curve(curve) => Some(curve.family()),
            Self::X25519 | Self::X448 | Self::X25519MlKem768 => Some(CurveFamily::Montgomery),
            Self::Secp256r1MlKem768 => Some(CurveFamily::Prime),
            Self::Dh(_) | Self::Ffdhe(_) | Self::MlKem(_) => None,
        }
    }

    /// True where one side encapsulates instead of agreeing.
    pub fn is_kem(self) -> bool {
        matches!(self.family(), KeyFamily::MlKem | KeyFamily::Hybrid)
    }

    /// The last part of a primitive in this group. The groups of WTLS modulo a prime are not those of TLS of the
    /// same size, and have names of their own.
    pub fn parameters(self, protocol: Protocol) -> &'static str {
        match (self, protocol) {
            (Self::Dh(512), Protocol::Wtls) => "wtlsdh512",
            (Self::Dh(768), Protocol::Wtls) => "wtlsdh768",
            (Self::Dh(bits), Protocol::Wtls) => intern(&format!("wtlsdh{bits}")),
            _ => self.name(Protocol::Tls12),
        }
    }

    pub fn primitive(self, operation: Operation, protocol: Protocol) -> Primitive {
        self.family().primitive(operation, self.parameters(protocol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_has_one_import() {
        let p256 = Curve::from_name("p256").map(KeyType::Ec);
        let share = Curve::from_name("p256").map(Group::Curve);
        let names = [
            p256.map(|key| key.primitive(Operation::Import)),
            share.map(|group| group.primitive(Operation::Import, Protocol::Tls12)),
            share.map(|group| group.primitive(Operation::Import, Protocol::Wtls)),
        ];
        assert_eq!(names, [Some(Primitive::new(Operation::Import, "ec", "p256")); 3]);
    }

    #[test]
    fn curves_are_told_apart_by_their_field() {
        // SEC 2 version 2.0 and WAP-261 table 8: which curves are over binary fields.
        let binary = Curve::all().filter(|curve| curve.family() == CurveFamily::Binary);
        let names: Vec<_> = binary.map(Curve::name).collect();
        let expected = [
            "sect163k1",
            "sect163r1",
            "sect163r2",
            "sect193r1",
            "sect193r2",
            "sect233k1",
            "sect233r1",
            "sect239k1",
            "sect283k1",
            "sect283r1",
            "sect409k1",
            "sect409r1",
            "sect571k1",
            "sect571r1",
            "wtls1",
            "sect113r1",
            "c2pnb163v1",
        ];
        assert_eq!(names, expected);
    }
}
