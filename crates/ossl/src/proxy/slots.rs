//! Storage of the original functions, by which trampolines find them.
//!
//! A trampoline has no argument that identifies its algorithm. Therefore each trampoline has many instances, by a const
//! generic: instance `n` serves the algorithm in slot `n`. Contexts are passed through unchanged; nothing is added to
//! the memory that OpenSSL allocates.

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
    /// A copy of that table, to be modified.
    pub functions: &'a mut [OSSL_DISPATCH],
}

/// The description of an algorithm and its original functions, adjacent in memory.
#[repr(C)]
pub struct Slot<const N: usize, D> {
    description: OnceLock<D>,
    functions: [AtomicPtr<c_void>; N],
}

impl<const N: usize, D> Slot<N, D> {
    const fn new() -> Self {
        Self { description: OnceLock::new(), functions: [const { AtomicPtr::new(std::ptr::null_mut()) }; N] }
    }

    /// The original function at `place`.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that place, and the slot's algorithm must have the function. This is
    /// true for every trampoline that runs, because it has replaced this function.
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
    /// The primitive of an algorithm that has only one.
    #[inline]
    pub fn primitive(&self) -> &Primitive {
        self.description.get().unwrap_or(&UNKNOWN)
    }
}

/// The algorithms of one kind, at most `MAX` of them with `N` functions each.
pub struct Slots<const N: usize, const MAX: usize, D> {
    /// The algorithms with a slot: name, and address of the original table.
    taken: Mutex<Vec<(String, usize)>>,
    pub slots: [Slot<N, D>; MAX],
}

impl<const N: usize, const MAX: usize, D> Slots<N, MAX, D> {
    /// Slots without algorithms.
    pub const fn new() -> Self {
        Self { taken: Mutex::new(Vec::new()), slots: [const { Slot::new() }; MAX] }
    }

    /// Assigns a slot to an algorithm, and replaces its functions. An algorithm that has a slot keeps it: the creation
    /// of the tables may fail, and is then repeated from the beginning.
    ///
    /// `trampolines` contains, for each of the `N` places, the function's number and its trampoline for every slot.
    /// Functions that the algorithm does not have are ignored.
    pub fn wrap(
        &self,
        description: D,
        algorithm: &mut Algorithm<'_>,
        trampolines: [(c_int, &[*const c_void; MAX]); N],
    ) -> Result<(), Full> {
        let number = self.number(algorithm.name, algorithm.original as usize)?;
        let slot = &self.slots[number];
        // The description of an algorithm is the same each time.
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

/// For primitives without a description; a test shows that no handshake has one.
static UNKNOWN: Primitive = Primitive::new(shakedown_trace::Operation::Digest, "unknown", "");

/// The instances of a trampoline for 4, 16, 32 or 64 slots: use the lowest sufficient number, as each is compiled.
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

/// A trampoline. It replaces the function at a place of the module's `SLOTS`, whose type is `Slot`; `work` calls the
/// original function.
///
/// `trampoline!(name, PLACE, (arguments) -> result, |slot, work| body)`. An instance only adds its slot and jumps to a
/// body that all instances share, so that the body is compiled once and occupies the processor's caches once. The slot
/// is the last argument, so that the other arguments stay in place.
macro_rules! trampoline {
    (
        $name:ident, $place:expr, ($($argument:ident: $type:ty),* $(,)?) -> $result:ty,
        |$slot:ident, $work:ident| $body:expr
    ) => {
        unsafe extern "C" fn $name<const SLOT: usize>($($argument: $type),*) -> $result {
            #[inline(never)]
            unsafe extern "C" fn any_slot($($argument: $type,)* $slot: &'static Slot) -> $result {
                type Function = unsafe extern "C" fn($($type),*) -> $result;
                // SAFETY: this replaces a function of the place's type, so the slot's algorithm has it; the
                // arguments are passed on from the caller.
                let $work = move || unsafe { $slot.original::<Function>($place)($($argument),*) };
                $body
            }
            // SAFETY: the arguments are the caller's.
            unsafe { any_slot($($argument,)* &SLOTS.slots[SLOT]) }
        }
    };
}
pub(super) use trampoline;

/// A trampoline that removes the note of a context, which is about to be freed.
macro_rules! forgetting {
    ($name:ident, $place:expr) => {
        crate::proxy::slots::trampoline!($name, $place, (context: *mut libc::c_void) -> (), |slot, work| {
            crate::proxy::contexts::forget(context);
            work()
        });
    };
}
pub(super) use forgetting;
