//! Key agreement, key encapsulation, and encryption of secrets with a public key.

use super::contexts;
use super::names::{self, Family};
use super::slots::{self, Algorithm, Full, Slots, forgetting, instances, trampoline};
use super::stopwatch::{self, Entry};
use crate::ffi::OSSL_PARAM;
use crate::random;
use libc::{c_int, c_void, size_t};
use shakedown_trace::Operation;
use shakedown_trace::suite::KeyFamily;

/// The kind of keys that an algorithm uses.
#[derive(Debug)]
struct Scheme {
    names: KeyFamily,
    family: Family,
}

/// Records the primitive for which a context is initialised.
fn begin(context: *mut c_void, scheme: Option<&Scheme>, operation: Operation, key: *mut c_void) {
    let primitive = scheme.and_then(|scheme| {
        // SAFETY: the scheme's functions take keys of the scheme's family.
        unsafe { names::primitive(scheme.names, scheme.family, operation, key) }
    });
    contexts::remember(context, primitive);
}

/// Times a call that performs the operation of its context. A call without an output buffer only queries a size.
fn run(context: *mut c_void, out: *mut u8, work: impl FnOnce() -> c_int) -> c_int {
    if out.is_null() {
        return work();
    }
    stopwatch::time(0, Entry::Complete, move |_| contexts::recall(context), work)
}

/// A function that initialises a context for an operation.
macro_rules! init {
    ($name:ident, $place:literal, $operation:expr) => {
        trampoline!(
            $name,
            $place,
            (context: *mut c_void, key: *mut c_void, params: *const OSSL_PARAM) -> c_int,
            |slot, work| {
                begin(context, slot.description(), $operation, key);
                work()
            }
        );
    };
}

/// A copy of a context has the same primitive.
macro_rules! duplicating {
    ($name:ident, $place:literal) => {
        trampoline!($name, $place, (context: *mut c_void) -> *mut c_void, |slot, work| {
            let copy = work();
            contexts::duplicate(context, copy);
            copy
        });
    };
}

/// Diffie–Hellman in all groups.
pub mod agreement {
    use super::*;

    type Slot = slots::Slot<4, Scheme>;
    static SLOTS: Slots<4, 16, Scheme> = Slots::new();

    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        let scheme = match algorithm.name {
            "DH" => Scheme { names: KeyFamily::Dh, family: Family::Dh },
            "ECDH" => Scheme { names: KeyFamily::Ec, family: Family::Ec },
            other => match names::fixed(other) {
                Some(name) => Scheme { names: KeyFamily::Ec, family: Family::Fixed(name) },
                // Key derivation functions with the interface of a key exchange.
                None => return Ok(()),
            },
        };
        SLOTS.wrap(
            scheme,
            algorithm,
            [
                (2, instances!(init; 16)),
                (3, instances!(derive; 16)),
                (5, instances!(freectx; 16)),
                (6, instances!(dupctx; 16)),
            ],
        )
    }

    init!(init, 0, Operation::Derive);
    trampoline!(
        derive,
        1,
        (context: *mut c_void, secret: *mut u8, length: *mut size_t, size: size_t) -> c_int,
        |slot, work| run(context, secret, work)
    );
    forgetting!(freectx, 2);
    duplicating!(dupctx, 3);
}

/// Key encapsulation.
pub mod kem {
    use super::*;

    type Slot = slots::Slot<6, Scheme>;
    static SLOTS: Slots<6, 16, Scheme> = Slots::new();

    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        let scheme = match names::fixed(algorithm.name) {
            Some(name) if name.starts_with("mlkem") => {
                Scheme { names: KeyFamily::MlKem, family: Family::Fixed(name) }
            }
            Some(name) if name.ends_with("mlkem768") => {
                Scheme { names: KeyFamily::Hybrid, family: Family::Fixed(name) }
            }
            // Those of RFC 9180 and RSA, which TLS does not use.
            _ => return Ok(()),
        };
        SLOTS.wrap(
            scheme,
            algorithm,
            [
                (2, instances!(encapsulate_init; 16)),
                (3, instances!(encapsulate; 16)),
                (4, instances!(decapsulate_init; 16)),
                (5, instances!(decapsulate; 16)),
                (6, instances!(freectx; 16)),
                (7, instances!(dupctx; 16)),
            ],
        )
    }

    init!(encapsulate_init, 0, Operation::Encapsulate);
    init!(decapsulate_init, 2, Operation::Decapsulate);
    trampoline!(
        encapsulate,
        1,
        (
            context: *mut c_void,
            out: *mut u8,
            out_length: *mut size_t,
            secret: *mut u8,
            secret_length: *mut size_t,
        ) -> c_int,
        |slot, work| run(context, out, work)
    );
    trampoline!(
        decapsulate,
        3,
        (
            context: *mut c_void,
            out: *mut u8,
            out_length: *mut size_t,
            input: *const u8,
            length: size_t,
        ) -> c_int,
        |slot, work| run(context, out, work)
    );
    forgetting!(freectx, 4);
    duplicating!(dupctx, 5);
}

/// Encryption of a secret with RSA.
pub mod transport {
    use super::*;

    type Slot = slots::Slot<6, Scheme>;
    static SLOTS: Slots<6, 4, Scheme> = Slots::new();

    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        if algorithm.name != "RSA" {
            return Ok(());
        }
        SLOTS.wrap(
            Scheme { names: KeyFamily::Rsa, family: Family::Rsa },
            algorithm,
            [
                (2, instances!(encrypt_init; 4)),
                (3, instances!(encrypt; 4)),
                (4, instances!(decrypt_init; 4)),
                (5, instances!(decrypt; 4)),
                (6, instances!(freectx; 4)),
                (7, instances!(dupctx; 4)),
            ],
        )
    }

    macro_rules! operation {
        ($name:ident, $place:literal, |$run:ident| $body:expr) => {
            trampoline!(
                $name,
                $place,
                (
                    context: *mut c_void,
                    out: *mut u8,
                    out_length: *mut size_t,
                    out_size: size_t,
                    input: *const u8,
                    length: size_t,
                ) -> c_int,
                |slot, work| {
                    let $run = || run(context, out, work);
                    $body
                }
            );
        };
    }

    init!(encrypt_init, 0, Operation::Encrypt);
    init!(decrypt_init, 2, Operation::Decrypt);
    operation!(encrypt, 1, |run| run());
    // Whether it draws random numbers for its blinding depends on the key's history.
    operation!(decrypt, 3, |run| random::apart(run));
    forgetting!(freectx, 4);
    duplicating!(dupctx, 5);
}
