//! Explicit curve parameters (§10.5.1.2), written for curves without a number and recognised by
//! value when received.
//!
//! Parameters of unknown curves are rejected: a peer must not choose a weak curve, or one on which the validation of
//! points is meaningless.

use super::Curve;
use super::data::{CurveData, Field};
use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, significant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EcField {
    Prime {
        p: Vec<u8>,
    },
    /// GF(2^m) in an optimal normal basis.
    NormalBasis {
        m: u16,
    },
    /// GF(2^m) modulo x^m + x^k + 1.
    Trinomial {
        m: u16,
        k: u16,
    },
    /// GF(2^m) modulo x^m + x^k3 + x^k2 + x^k1 + 1.
    Pentanomial {
        m: u16,
        k: [u16; 3],
    },
    /// GF(2^m) modulo any polynomial.
    Polynomial {
        m: u16,
        polynomial: Vec<u8>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EcParameters {
    pub field: EcField,
    pub a: Vec<u8>,
    pub b: Vec<u8>,
    /// The seed of a verifiably random curve; may be empty.
    pub seed: Vec<u8>,
    pub base: Vec<u8>,
    /// The order of the base point.
    pub order: Vec<u8>,
    pub cofactor: Vec<u8>,
}

impl EcParameters {
    /// The parameters of a curve, with a compressed base point.
    pub fn of(curve: Curve) -> Self {
        let data = curve.data();
        let mut base = vec![2 + data.generator_sign];
        base.extend(unhex(data.generator_x));
        Self {
            field: field_of(data),
            a: unhex(data.a),
            b: unhex(data.b),
            seed: Vec::new(),
            base,
            order: unhex(data.order),
            cofactor: vec![data.cofactor],
        }
    }

    /// The curve with these parameters. The seed is ignored.
    pub fn curve(&self) -> Option<Curve> {
        Curve::ALL.into_iter().find(|curve| self.is(curve.data()))
    }

    fn is(&self, data: &CurveData) -> bool {
        let same = |received: &[u8], ours: &str| significant(received) == significant(&unhex(ours));
        let field = match (&self.field, field_of(data)) {
            (EcField::Prime { p }, EcField::Prime { p: ours }) => significant(p) == significant(&ours),
            (field, ours) => *field == ours,
        };
        field
            && same(&self.a, data.a)
            && same(&self.b, data.b)
            && same(&self.order, data.order)
            && significant(&self.cofactor) == [data.cofactor]
            && self.base_is(data)
    }

    fn base_is(&self, data: &CurveData) -> bool {
        let (x, y) = (unhex(data.generator_x), unhex(data.generator_y));
        match self.base.split_first() {
            Some((4, point)) => point == [x, y].concat(),
            Some((form, point)) => *form == 2 + data.generator_sign && point == x,
            None => false,
        }
    }
}

fn field_of(data: &CurveData) -> EcField {
    match data.field {
        Field::Prime { p } => EcField::Prime { p: unhex(p) },
        Field::Trinomial { m, k } => EcField::Trinomial { m, k },
        Field::Pentanomial { m, k1, k2, k3 } => EcField::Pentanomial { m, k: [k1, k2, k3] },
    }
}

/// The bytes of a table entry, which has two hexadecimal digits per byte.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap_or_default() as u8;
    text.as_bytes().chunks(2).map(|pair| (digit(pair[0]) << 4) | digit(pair[1])).collect()
}

const PRIME: u8 = 1;
const CHARACTERISTIC_TWO: u8 = 2;

impl Codec for EcParameters {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match &self.field {
            EcField::Prime { p } => {
                to.u8(PRIME);
                to.v8("prime", p)?;
            }
            EcField::NormalBasis { m } => {
                to.u8(CHARACTERISTIC_TWO);
                to.u16(*m);
                to.u8(1);
            }
            EcField::Trinomial { m, k } => {
                to.u8(CHARACTERISTIC_TWO);
                to.u16(*m);
                to.u8(2);
                to.u16(*k);
            }
            EcField::Pentanomial { m, k } => {
                to.u8(CHARACTERISTIC_TWO);
                to.u16(*m);
                to.u8(3);
                k.iter().for_each(|k| to.u16(*k));
            }
            EcField::Polynomial { m, polynomial } => {
                to.u8(CHARACTERISTIC_TWO);
                to.u16(*m);
                to.u8(4);
                to.v8("irreducible polynomial", polynomial)?;
            }
        }
        to.v8("curve coefficient a", &self.a)?;
        to.v8("curve coefficient b", &self.b)?;
        to.v8("curve seed", &self.seed)?;
        to.v8("base point", &self.base)?;
        to.v8("order", &self.order)?;
        to.v8("cofactor", &self.cofactor)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let field = match from.u8("field type")? {
            PRIME => EcField::Prime { p: from.v8("prime")?.to_vec() },
            CHARACTERISTIC_TWO => {
                let m = from.u16("field degree")?;
                match from.u8("basis type")? {
                    1 => EcField::NormalBasis { m },
                    2 => EcField::Trinomial { m, k: from.u16("trinomial exponent")? },
                    3 => {
                        let mut k = [0; 3];
                        for exponent in &mut k {
                            *exponent = from.u16("pentanomial exponent")?;
                        }
                        EcField::Pentanomial { m, k }
                    }
                    4 => {
                        let polynomial = from.v8("irreducible polynomial")?.to_vec();
                        EcField::Polynomial { m, polynomial }
                    }
                    other => {
                        return Err(DecodeError::Unassigned { field: "basis type", value: other.into() });
                    }
                }
            }
            other => {
                return Err(DecodeError::Unassigned { field: "field type", value: other.into() });
            }
        };
        Ok(Self {
            field,
            a: from.v8("curve coefficient a")?.to_vec(),
            b: from.v8("curve coefficient b")?.to_vec(),
            seed: from.v8("curve seed")?.to_vec(),
            base: from.v8("base point")?.to_vec(),
            order: from.v8("order")?.to_vec(),
            cofactor: from.v8("cofactor")?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_curve_is_recognised_from_its_explicit_parameters() {
        for curve in Curve::ALL {
            let bytes = EcParameters::of(curve).to_bytes().unwrap();
            let parsed = EcParameters::from_bytes("parameters", &bytes).unwrap();
            assert_eq!(parsed.curve(), Some(curve));
            assert_eq!(unhex(curve.data().generator_x).len(), curve.field_bytes());
            assert_eq!(unhex(curve.data().order).len(), curve.order_bytes());
        }
    }

    #[test]
    fn altered_parameters_match_no_curve() {
        let mut parameters = EcParameters::of(Curve::Prime256v1);
        let last = parameters.b.len() - 1;
        parameters.b[last] ^= 1;
        assert_eq!(parameters.curve(), None);
        let mut parameters = EcParameters::of(Curve::Sect283k1);
        parameters.base[0] ^= 1;
        assert_eq!(parameters.curve(), None);
    }

    #[test]
    fn leading_zeros_and_an_uncompressed_base_point_are_accepted() {
        let data = Curve::Secp160r1.data();
        let mut parameters = EcParameters::of(Curve::Secp160r1);
        parameters.a.insert(0, 0);
        parameters.base = [vec![4], unhex(data.generator_x), unhex(data.generator_y)].concat();
        assert_eq!(parameters.curve(), Some(Curve::Secp160r1));
    }
}
