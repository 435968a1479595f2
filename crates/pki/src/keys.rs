//! Keys of every type that a suite can name: generation, recognition, and conversion from and to PKCS #8.

use crate::cancellation::is_wanted;
use crate::error::{Doing, PkiError};
use openssl::bn::{BigNum, BigNumContext, BigNumRef, MsbOption};
use openssl::dsa::Dsa;
use openssl::ec::{Asn1Flag, EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, Id, KeyType as OpenSslKeyType, PKey, PKeyRef, Private};
use shakedown_trace::suite::{Curve, KeyFamily, KeyType};

const ML_DSA: [(OpenSslKeyType, u8); 3] =
    [(OpenSslKeyType::ML_DSA_44, 44), (OpenSslKeyType::ML_DSA_65, 65), (OpenSslKeyType::ML_DSA_87, 87)];

/// The family of a key; `None` for kinds that no suite uses.
pub fn family<T>(key: &PKeyRef<T>) -> Option<KeyFamily> {
    match key.id() {
        Id::RSA => Some(KeyFamily::Rsa),
        Id::DSA => Some(KeyFamily::Dsa),
        Id::EC => Some(KeyFamily::Ec),
        Id::ED25519 => Some(KeyFamily::Edwards),
        _ => ML_DSA.into_iter().any(|(kind, _)| key.is_a(kind)).then_some(KeyFamily::MlDsa),
    }
}

/// Generates a new key.
pub fn generate(key: KeyType) -> Result<PKey<Private>, PkiError> {
    if !is_wanted() {
        return Err(PkiError::Interrupted);
    }
    let made = match key {
        KeyType::Rsa { bits, exponent_3 } => generate_rsa(bits, exponent_3),
        KeyType::Dsa(bits) => generate_dsa(bits),
        KeyType::Ec(curve) => generate_ec(curve),
        KeyType::Ed25519 => PKey::generate_ed25519(),
        KeyType::MlDsa(level) => generate_ml_dsa(level),
    };
    match made {
        Err(_) if !is_wanted() => Err(PkiError::Interrupted),
        made => made.doing(format!("make a {} key", key.standard_name())),
    }
}

/// The type of a key in suite names; `None` for kinds, sizes and exponents that no suite name has.
pub fn key_type<T: HasPublic>(key: &PKeyRef<T>) -> Option<KeyType> {
    match family(key)? {
        KeyFamily::Rsa => {
            let rsa = key.rsa().ok()?;
            let bits =
                u16::try_from(rsa.n().num_bits()).ok().filter(|bits| KeyType::RSA_BITS.contains(bits))?;
            let exponent_3 = match rsa.e().to_vec()[..] {
                [3] => true,
                [1, 0, 1] => false,
                _ => return None,
            };
            Some(KeyType::Rsa { bits, exponent_3 })
        }
        KeyFamily::Dsa => {
            let bits = u16::try_from(key.dsa().ok()?.p().num_bits()).ok()?;
            KeyType::DSA_BITS.contains(&bits).then_some(KeyType::Dsa(bits))
        }
        KeyFamily::Ec => {
            let name = key.ec_key().ok()?.group().curve_name()?.short_name().ok()?;
            Curve::from_openssl(name).map(KeyType::Ec)
        }
        KeyFamily::Edwards => Some(KeyType::Ed25519),
        _ => ML_DSA.into_iter().find(|row| key.is_a(row.0)).map(|row| KeyType::MlDsa(row.1)),
    }
}

/// A readable name of a key: its name in suite names, or else its kind and size.
pub fn describe<T: HasPublic>(key: &PKeyRef<T>) -> String {
    if let Some(key) = key_type(key) {
        return key.standard_name().to_owned();
    }
    let bits = key.bits();
    match family(key) {
        Some(KeyFamily::Rsa) => {
            let exponent =
                key.rsa().ok().and_then(|rsa| rsa.e().to_dec_str().ok().map(|text| text.to_string()));
            format!("RSA of {bits} bits, e = {}", exponent.unwrap_or_else(|| "?".into()))
        }
        Some(KeyFamily::Dsa) => format!("DSA of {bits} bits"),
        Some(KeyFamily::Ec) => format!("EC of {bits} bits on an unknown curve"),
        _ => {
            let name =
                Nid::from_raw(key.id().as_raw()).long_name().unwrap_or("a key of an unknown kind").to_owned();
            format!("{name} of {bits} bits")
        }
    }
}

/// The key as PKCS #8 DER, unencrypted.
pub fn to_pkcs8(key: &PKeyRef<Private>) -> Result<Vec<u8>, PkiError> {
    key.private_key_to_pkcs8().doing("encode a private key")
}

/// Reads a key in PKCS #8 DER.
pub fn from_pkcs8(der: &[u8]) -> Result<PKey<Private>, PkiError> {
    PKey::private_key_from_der(der).doing("read a private key")
}

fn generate_rsa(bits: u16, exponent_3: bool) -> Result<PKey<Private>, ErrorStack> {
    let exponent = BigNum::from_u32(if exponent_3 { 3 } else { 65_537 })?;
    PKey::from_rsa(crate::ffi::generate_rsa(i32::from(bits), &exponent)?)
}

fn generate_ec(curve: Curve) -> Result<PKey<Private>, ErrorStack> {
    let nid = curve_nid(curve)?;
    let mut group = EcGroup::from_curve_name(nid)?;
    group.set_asn1_flag(Asn1Flag::NAMED_CURVE);
    PKey::from_ec_key(EcKey::generate(&group)?)
}

/// OpenSSL's number of a curve.
fn curve_nid(curve: Curve) -> Result<Nid, ErrorStack> {
    // Long and short names of curves are the same in OpenSSL, and every one of them has an object identifier.
    openssl::asn1::Asn1Object::from_str(curve.openssl_name()).map(|object| object.nid())
}

fn generate_ml_dsa(level: u8) -> Result<PKey<Private>, ErrorStack> {
    let kind = ML_DSA.into_iter().find(|row| row.1 == level).map_or(OpenSslKeyType::ML_DSA_87, |row| row.0);
    let mut seed = [0; 32];
    openssl::rand::rand_priv_bytes(&mut seed)?;
    PKey::private_key_from_seed(None, kind, None, &seed)
}

/// Generates a DSA key with the subgroup sizes of FIPS 186-2 (160 bits) and, from 2048 bits, FIPS 186-4 (256 bits).
///
/// Implemented here because OpenSSL does not generate 512 bits. The parameters are random instead of derived from a
/// published seed, because no one needs to verify them. Generator and public key are drawn until they are as long as
/// the prime, so that all keys of a size have the same encoded length.
fn generate_dsa(bits: u16) -> Result<PKey<Private>, ErrorStack> {
    let bits = i32::from(bits);
    let mut context = BigNumContext::new()?;
    let mut q = BigNum::new()?;
    q.generate_prime(if bits < 2048 { 160 } else { 256 }, false, None, None)?;
    let p = prime_above_subgroup(bits, &q, &mut context)?;

    let one = BigNum::from_u32(1)?;
    let mut cofactor = BigNum::new()?;
    let mut p_less_one = BigNum::new()?;
    p_less_one.checked_sub(&p, &one)?;
    cofactor.checked_div(&p_less_one, &q, &mut context)?;
    let mut g = BigNum::new()?;
    let mut base = BigNum::from_u32(2)?;
    g.mod_exp(&base, &cofactor, &p, &mut context)?;
    while g.num_bits() != bits {
        base.add_word(1)?;
        g.mod_exp(&base, &cofactor, &p, &mut context)?;
    }

    let mut q_less_one = BigNum::new()?;
    q_less_one.checked_sub(&q, &one)?;
    let mut x = BigNum::new_secure()?;
    let mut y = BigNum::new()?;
    while y.num_bits() != bits {
        q_less_one.rand_range(&mut x)?;
        x.add_word(1)?;
        y.mod_exp(&g, &x, &p, &mut context)?;
    }
    PKey::from_dsa(Dsa::from_private_components(p, q, g, x, y)?)
}

/// A prime of exactly `bits` bits that is 1 modulo `q`.
fn prime_above_subgroup(bits: i32, q: &BigNumRef, context: &mut BigNumContext) -> Result<BigNum, ErrorStack> {
    let mut twice_q = BigNum::new()?;
    twice_q.lshift1(q)?;
    let mut candidate = BigNum::new()?;
    let mut p = BigNum::new()?;
    let mut rest = BigNum::new()?;
    loop {
        candidate.rand(bits, MsbOption::ONE, false)?;
        rest.nnmod(&candidate, &twice_q, context)?;
        p.checked_sub(&candidate, &rest)?;
        p.add_word(1)?;
        if p.num_bits() == bits && p.is_prime_fasttest(64, context, true)? {
            return Ok(p);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::rsa::Rsa;

    fn every_key() -> Vec<KeyType> {
        let mut keys: Vec<_> = Curve::all().map(KeyType::Ec).collect();
        // Larger RSA keys take seconds to find and go through the same code.
        for bits in [512, 768, 1024, 1536, 2048] {
            keys.extend([false, true].map(|exponent_3| KeyType::Rsa { bits, exponent_3 }));
        }
        keys.extend(KeyType::DSA_BITS.map(KeyType::Dsa));
        keys.push(KeyType::Ed25519);
        keys.extend(KeyType::ML_DSA.map(KeyType::MlDsa));
        keys
    }

    #[test]
    fn every_key_type_is_generated_and_survives_pkcs8() {
        for wanted in every_key() {
            let key = generate(wanted).unwrap();
            assert_eq!(key_type(&key), Some(wanted));
            let again = from_pkcs8(&to_pkcs8(&key).unwrap()).unwrap();
            assert_eq!(key_type(&again), Some(wanted));
            assert!(again.public_eq(&key), "{}", wanted.standard_name());
        }
    }

    #[test]
    fn dsa_keys_have_the_standard_sizes() {
        for (bits, subgroup_bits) in [(512, 160), (1024, 160), (2048, 256)] {
            let key = generate(KeyType::Dsa(bits)).unwrap().dsa().unwrap();
            let mut context = BigNumContext::new().unwrap();
            let one = BigNum::from_u32(1).unwrap();
            assert_eq!(key.p().num_bits(), i32::from(bits));
            assert_eq!(key.q().num_bits(), subgroup_bits);
            assert!(
                key.p().is_prime(64, &mut context).unwrap() && key.q().is_prime(64, &mut context).unwrap()
            );
            let mut power = BigNum::new().unwrap();
            power.mod_exp(key.g(), key.q(), key.p(), &mut context).unwrap();
            assert_eq!(power, one, "g does not generate the subgroup");
            assert_ne!(key.g(), &*one);
            assert!(key.priv_key() < key.q());
        }
    }

    #[test]
    fn unsupported_key_types_are_not_recognised() {
        assert_eq!(key_type(&PKey::from_rsa(Rsa::generate(1048).unwrap()).unwrap()), None);
        let odd = Rsa::generate_with_e(1024, &BigNum::from_u32(17).unwrap()).unwrap();
        assert_eq!(key_type(&PKey::from_rsa(odd).unwrap()), None);
        assert_eq!(key_type(&PKey::generate_ed448().unwrap()), None);
    }
}
