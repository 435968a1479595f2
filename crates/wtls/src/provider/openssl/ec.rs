//! Elliptic curves: points, keys, ECDH and ECDSA.

use super::compression::Decompressor;
use super::ffi;
use crate::crypto::{CryptoError, Random};
use crate::curve::Curve;
use crate::numbers::PointForm;
use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::asn1::Asn1Object;
use openssl::bn::{BigNum, BigNumContext, BigNumRef};
use openssl::ec::{EcGroup, EcGroupRef, EcKey, EcPoint, PointConversionForm};
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// A point that is on its curve and not of small order.
pub struct Public {
    pub curve: Curve,
    point: EcPoint,
    /// The key in OpenSSL's form for verification, created at its first use.
    verification_key: OnceLock<EcKey<pkey::Public>>,
}

/// A secret scalar and its point.
pub struct Private {
    pub curve: Curve,
    scalar: BigNum,
    point: EcPoint,
}

/// A group and its order.
struct Entry {
    group: EcGroup,
    order: BigNum,
}

/// The groups of all curves, created once: the creation of a group takes as long as a small handshake.
pub struct Curves {
    entries: Vec<Entry>,
}

impl Curves {
    pub fn new() -> Result<Self, CryptoError> {
        let mut context = BigNumContext::new()?;
        let entries = Curve::ALL
            .into_iter()
            .map(|curve| {
                let mut group = EcGroup::from_curve_name(nid(curve)?)?;
                group.set_asn1_flag(openssl::ec::Asn1Flag::NAMED_CURVE);
                let mut order = BigNum::new()?;
                group.order(&mut order, &mut context)?;
                Ok(Entry { group, order })
            })
            .collect::<Result<_, CryptoError>>()?;
        Ok(Self { entries })
    }

    fn entry(&self, curve: Curve) -> &Entry {
        &self.entries[curve as usize]
    }

    pub fn import(&self, curve: Curve, octets: &[u8]) -> Result<Public, CryptoError> {
        let invalid = |_| CryptoError::InvalidKey;
        let field = curve.field_bytes();
        let right_length = match octets.first() {
            Some(2 | 3) => octets.len() == 1 + field,
            Some(4) => octets.len() == 1 + 2 * field,
            _ => false,
        };
        if !right_length || has_small_order(curve, &octets[1..=field]) {
            return Err(CryptoError::InvalidKey);
        }
        let group = &self.entry(curve).group;
        let point = match (octets[0], Decompressor::of(curve, group)) {
            (form @ (2 | 3), Some(decompressor)) => decompressor.point(group, &octets[1..], form == 3)?,
            // Decoding checks that the point is on the curve, in both forms.
            _ => EcPoint::from_bytes(group, octets, &mut *BigNumContext::new()?).map_err(invalid)?,
        };
        Ok(Public { curve, point, verification_key: OnceLock::new() })
    }

    pub fn key(&self, curve: Curve, scalar: &[u8]) -> Result<Private, CryptoError> {
        let entry = self.entry(curve);
        let scalar = BigNum::from_slice(scalar)?;
        if scalar.num_bits() == 0 || scalar >= entry.order {
            return Err(CryptoError::InvalidKey);
        }
        self.key_of(curve, scalar)
    }

    fn key_of(&self, curve: Curve, mut scalar: BigNum) -> Result<Private, CryptoError> {
        let group = &self.entry(curve).group;
        scalar.set_const_time();
        let mut context = BigNumContext::new()?;
        let mut point = EcPoint::new(group)?;
        point.mul_generator2(group, &scalar, &mut context)?;
        Ok(Private { curve, scalar, point })
    }

    pub fn generate(&self, curve: Curve, random: &mut dyn Random) -> Result<Private, CryptoError> {
        self.key_of(curve, self.random_scalar(curve, random)?)
    }

    /// A uniformly distributed number from 1 to the order minus 1.
    fn random_scalar(&self, curve: Curve, random: &mut dyn Random) -> Result<BigNum, CryptoError> {
        let order = &self.entry(curve).order;
        let excess_bits = curve.order_bytes() as u32 * 8 - curve.order_bits();
        let mut bytes = Zeroizing::new(vec![0; curve.order_bytes()]);
        // Each iteration succeeds with probability one half or more, unless the source is broken.
        for _ in 0..256 {
            random.fill(&mut bytes);
            bytes[0] &= 0xFF >> excess_bits;
            let scalar = BigNum::from_slice(&bytes)?;
            if scalar.num_bits() > 0 && scalar < *order {
                return Ok(scalar);
            }
        }
        Err(CryptoError::Provider("the source of randomness repeats itself".to_owned()))
    }

    pub fn public_value(&self, key: &Private, form: PointForm) -> Result<Vec<u8>, CryptoError> {
        let form = match form {
            PointForm::Compressed => PointConversionForm::COMPRESSED,
            PointForm::Uncompressed => PointConversionForm::UNCOMPRESSED,
        };
        let mut context = BigNumContext::new()?;
        Ok(key.point.to_bytes(&self.entry(key.curve).group, form, &mut context)?)
    }

    pub fn derive(&self, key: &Private, peer: &Public) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        let group = &self.entry(key.curve).group;
        let mut context = BigNumContext::new()?;
        let mut shared = EcPoint::new(group)?;
        shared.mul2(group, &peer.point, &key.scalar, &mut context)?;
        if shared.is_infinity(group) {
            return Err(CryptoError::DegenerateSecret);
        }
        let x = self.x_coordinate(group, &shared, &mut context)?;
        Ok(Zeroizing::new(x.to_vec_padded(key.curve.field_bytes() as i32)?))
    }

    fn x_coordinate(
        &self,
        group: &EcGroupRef,
        point: &EcPoint,
        context: &mut BigNumContext,
    ) -> Result<BigNum, CryptoError> {
        let (mut x, mut y) = (BigNum::new()?, BigNum::new()?);
        point.affine_coordinates(group, &mut x, &mut y, context)?;
        Ok(x)
    }

    pub fn sign(&self, key: &Private, hash: &[u8], random: &mut dyn Random) -> Result<Vec<u8>, CryptoError> {
        let Entry { group, order } = self.entry(key.curve);
        let half = key.curve.order_bytes() as i32;
        let signing_key = EcKey::from_private_components(group, &key.scalar, &key.point)?;
        let mut context = BigNumContext::new()?;
        loop {
            let mut nonce = self.random_scalar(key.curve, random)?;
            nonce.set_const_time();
            let mut point = EcPoint::new(group)?;
            point.mul_generator2(group, &nonce, &mut context)?;
            let x = self.x_coordinate(group, &point, &mut context)?;
            let mut r = BigNum::new()?;
            r.nnmod(&x, order, &mut context)?;
            if r.num_bits() == 0 {
                continue;
            }
            let mut inverse = BigNum::new()?;
            inverse.mod_inverse(&nonce, order, &mut context)?;
            let Some(signature) = sign_with(hash, &inverse, &r, &signing_key)? else { continue };
            let mut bytes = signature.r().to_vec_padded(half)?;
            bytes.extend(signature.s().to_vec_padded(half)?);
            return Ok(bytes);
        }
    }

    pub fn verify(&self, key: &Public, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let half = key.curve.order_bytes();
        if signature.len() != 2 * half {
            return Err(CryptoError::BadSignature);
        }
        let (r, s) = signature.split_at(half);
        let signature = EcdsaSig::from_private_components(BigNum::from_slice(r)?, BigNum::from_slice(s)?)?;
        let verification_key = match key.verification_key.get() {
            Some(verification_key) => verification_key,
            None => {
                let group = &self.entry(key.curve).group;
                let made = EcKey::from_public_key(group, &key.point)?;
                key.verification_key.get_or_init(|| made)
            }
        };
        match signature.verify(hash, verification_key) {
            Ok(true) => Ok(()),
            // For OpenSSL, r or s out of range is an error; here, the signature does not verify.
            Ok(false) | Err(_) => Err(CryptoError::BadSignature),
        }
    }
}

/// Signs with a given nonce. `None` if s is zero, so that another nonce is needed.
fn sign_with(
    hash: &[u8],
    inverse_nonce: &BigNumRef,
    r: &BigNumRef,
    key: &EcKey<pkey::Private>,
) -> Result<Option<EcdsaSig>, CryptoError> {
    let length = i32::try_from(hash.len()).map_err(|_| CryptoError::WrongKeyKind)?;
    // SAFETY: all pointers are valid during the call, which keeps none of them. The caller owns a signature that is
    // not null.
    unsafe {
        let signature =
            ffi::ECDSA_do_sign_ex(hash.as_ptr(), length, inverse_nonce.as_ptr(), r.as_ptr(), key.as_ptr());
        if signature.is_null() {
            let error = ErrorStack::get();
            return if error.errors().is_empty() { Ok(None) } else { Err(error.into()) };
        }
        Ok(Some(EcdsaSig::from_ptr(signature)))
    }
}

/// Whether a point with this x-coordinate has an order that divides the cofactor. On a binary
/// curve y² + xy = x³ + ax² + b, the point of order 2 has x = 0, and those of order 4 have x⁴ = b,
/// which is 1 on both curves of cofactor 4.
fn has_small_order(curve: Curve, x: &[u8]) -> bool {
    let Some((last, leading)) = x.split_last() else { return true };
    let greatest = match curve.cofactor() {
        1 => return false,
        2 => 0,
        _ => 1,
    };
    leading.iter().all(|byte| *byte == 0) && *last <= greatest
}

/// OpenSSL's NID of a curve, from its standard name.
pub fn nid(curve: Curve) -> Result<Nid, ErrorStack> {
    Ok(Asn1Object::from_str(curve.standard_name())?.nid())
}
