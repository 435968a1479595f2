//! Where trampolines find the function that they stand in for.
//!
//! A trampoline has no argument that says which algorithm it is, so each kind exists many times, as a const
//! generic: trampoline number `n` serves the algorithm in slot `n`. Contexts are passed through untouched; no memory
//! is added to what OpenSSL allocates.

use crate::ffi::OSSL_DISPATCH;
use libc::{c_int, c_void};
use shakedown_trace::Primitive;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// There are more algorithms of a kind than slots for them.
#[derive(Debug)]
pub struct Full {
    pub max: usize,
}

pub struct Algorithm<'a> {
    /// Its first name.
    pub name: &'a str,
    /// Its properties, as in `provider=default,structure=SubjectPublicKeyInfo`.
    pub properties: &'a str,
    /// The original's table of functions: static, and the same for every context that loads the provider.
    pub original: *const OSSL_DISPATCH,
    /// A copy of that table, to be changed.
    pub functions: &'a mut [OSSL_DISPATCH],
}

/// An algorithm: what it is, and its original functions, as neighbours in memory.
#[repr(C)]
pub struct Slot<const N: usize, D> {
    description: OnceLock<D>,
    functions: [AtomicPtr<c_void>; N],
}

impl<const N: usize, D> Slot<N, D> {
    const fn new() -> Self {
        Self { description: OnceLock::new(), functions: [const { AtomicPtr::new(std::ptr::null_mut()) }; N] }
    }

    /// The original function at a place.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that place, and the slot's algorithm must have the function:
    /// which is so for every trampoline that runs, for it was put there in the function's stead.
    #[inline]
    pub unsafe fn original<F: Copy>(&self, place: usize) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let pointer = self.functions[place].load(Ordering::Relaxed);
        // SAFETY: as the caller guarantees, the pointer is a function of this type.
        unsafe { std::mem::transmute_copy(&pointer) }
    }

    #[inline]
    pub fn description(&self) -> Option<&D> {
        self.description.get()
    }
}

impl<const N: usize> Slot<N, Primitive> {
    /// The primitive that the algorithm always is.
    #[inline]
    pub fn primitive(&self) -> &Primitive {
        self.description.get().unwrap_or(&UNKNOWN)
    }
}

/// The algorithms of one kind, at most `MAX` of them with `N` functions each.
pub struct Slots<const N: usize, const MAX: usize, D> {
    /// Who has the slots: name, and address of the original table.
    taken: Mutex<Vec<(String, usize)>>,
    pub slots: [Slot<N, D>; MAX],
}

impl<const N: usize, const MAX: usize, D> Slots<N, MAX, D> {
    /// No algorithm yet.
    pub const fn new() -> Self {
        Self { taken: Mutex::new(Vec::new()), slots: [const { Slot::new() }; MAX] }
    }

    /// Gives an algorithm a slot, and replaces its functions. One that has been here before gets the slot that it had:
    /// making the tables may fail half way, and is then begun again.
    ///
    /// `trampolines` names, for each of the `N` places, the function's number and its trampoline for every
    /// slot; functions that the algorithm does not have are left out.
    pub fn wrap(
        &self,
        description: D,
        algorithm: &mut Algorithm<'_>,
        trampolines: [(c_int, &[*const c_void; MAX]); N],
    ) -> Result<(), Full> {
        let number = self.number(algorithm.name, algorithm.original as usize)?;
        let slot = &self.slots[number];
        // The same algorithm is described the same each time.
        let _ = slot.description.set(description);
        for entry in algorithm.functions.iter_mut() {
            let place = trampolines.iter().position(|(function, _)| *function == entry.function_id);
            if let Some(place) = place {
                slot.functions[place].store(entry.function.cast_mut(), Ordering::Relaxed);
                entry.function = trampolines[place].1[number];
            }
        }
        Ok(())
    }

    /// The number of an algorithm's slot.
    fn number(&self, name: &str, original: usize) -> Result<usize, Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = taken.iter().position(|known| known.0 == name && known.1 == original) {
            return Ok(number);
        }
        if taken.len() == MAX {
            return Err(Full { max: MAX });
        }
        taken.push((name.to_owned(), original));
        Ok(taken.len() - 1)
    }
}

/// Stands in where a primitive cannot be named; a test shows that no handshake has one.
static UNKNOWN: Primitive = Primitive::new(shakedown_trace::Operation::Digest, "unknown", "");

/// The instances of a trampoline for 4, 16, 32 or 64 slots: the fewest that have room, for each is compiled.
macro_rules! instances {
    ($trampoline:ident; 4) => {
        crate::proxy::slots::instances!(@ $trampoline 0 1 2 3)
    };
    ($trampoline:ident; 16) => {
        crate::proxy::slots::instances!(@ $trampoline 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($trampoline:ident; 32) => {
        crate::proxy::slots::instances!(@ $trampoline
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($trampoline:ident; 64) => {
        crate::proxy::slots::instances!(@ $trampoline
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
    };
    (@ $trampoline:ident $($slot:literal)*) => {
        &[$($trampoline::<$slot> as *const libc::c_void),*]
    };
}
pub(super) use instances;

/// A trampoline: it stands in for the function at a place of the module's `SLOTS`, which are of its type `Slot`, and has
/// `work` call that function.
///
/// `trampoline!(name, PLACE, (arguments) -> result, |slot, work| body)`. An instance says which slot it is, and no more: all
/// jump to one body, which is compiled once and takes the room of one in the processor's caches. The slot is the last
/// argument, so that the others stay where the caller put them.
macro_rules! trampoline {
    (
        $name:ident, $place:expr, ($($argument:ident: $type:ty),* $(,)?) -> $result:ty,
        |$slot:ident, $work:ident| $body:expr
    ) => {
        unsafe extern "C" fn $name<const SLOT: usize>($($argument: $type),*) -> $result {
            #[inline(never)]
            unsafe extern "C" fn any_slot($($argument: $type,)* $slot: &'static Slot) -> $result {
                type Function = unsafe extern "C" fn($($type),*) -> $result;
                // SAFETY: this stands in for a function of the place's type, so the slot's algorithm has it; the
                // arguments are its caller's, handed on.
                let $work = move || unsafe { $slot.original::<Function>($place)($($argument),*) };
                $body
            }
            // SAFETY: the arguments are the caller's.
            unsafe { any_slot($($argument,)* &SLOTS.slots[SLOT]) }
        }
    };
}
pub(super) use trampoline;

/// A trampoline that forgets the context which is about to be freed.
macro_rules! forgetting {
    ($name:ident, $place:expr) => {
        crate::proxy::slots::trampoline!($name, $place, (context: *mut libc::c_void) -> (), |slot, work| {
            crate::proxy::contexts::forget(context);
            work()
        });
    };
}
pub(super) use forgetting;
