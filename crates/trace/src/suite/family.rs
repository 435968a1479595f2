//! Families of public keys, and the names of their operations.
//!
//! The middle part of a [`Primitive`], its algorithm, follows from the family of the key and the operation. Only this
//! module defines these names. An import is named after the family of the key, for any use and any source of the key:
//! reading an elliptic-curve key is `import ec`, from a certificate, a key share or a WTLS parameter.

use super::{Curve, Group, KeyType, Protocol};
use crate::operation::{Operation, Primitive, intern};
use crate::spelled;

spelled! {
    /// A family of public keys: keys with the same operations and algorithms.
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
        /// ML-KEM with a curve; each operation on both is counted as one.
        Hybrid = "hybrid",
    }
}

spelled! {
    /// The arithmetic of a curve; costs scale alike within a family.
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

    /// The primitive of an operation with a key of the given size, curve or group.
    pub const fn primitive(self, operation: Operation, parameters: &'static str) -> Primitive {
        Primitive::new(operation, self.algorithm(operation), parameters)
    }
}

impl Curve {
    /// The kind of its arithmetic.
    pub fn family(self) -> CurveFamily {
        let name = self.openssl_name();
        // Curves 1, 4 and 5 of WTLS and the sect and c2pnb curves; WTLS curves 3, 10 and 11 are sect curves.
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

    /// The family of the key's curve; `None` for keys that are not on a curve.
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

    /// The family of the curve; of a hybrid, that of its curve; `None` for other groups.
    pub fn curve_family(self) -> Option<CurveFamily> {
        match self {
            Self::Curve(curve) => Some(curve.family()),
            Self::X25519 | Self::X448 | Self::X25519MlKem768 => Some(CurveFamily::Montgomery),
            Self::Secp256r1MlKem768 => Some(CurveFamily::Prime),
            Self::Dh(_) | Self::Ffdhe(_) | Self::MlKem(_) => None,
        }
    }

    /// True if one side encapsulates instead of agreeing.
    pub fn is_kem(self) -> bool {
        matches!(self.family(), KeyFamily::MlKem | KeyFamily::Hybrid)
    }

    /// The last part of a primitive in this group. WTLS's groups modulo a prime differ from TLS's, so their names do
    /// too.
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
    fn import_primitive_does_not_depend_on_the_protocol() {
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
    fn curves_are_classified_by_their_field() {
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
