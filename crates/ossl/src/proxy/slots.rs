//! Where trampolines find the function that they stand in for.
//!
//! A trampoline has no argument that says which algorithm it is, so each kind exists [`SLOTS`] times, as a
//! const generic: trampoline number `n` serves the algorithm in slot `n`. Contexts are passed through
//! untouched; no memory is added to what OpenSSL allocates.

use crate::ffi::OSSL_DISPATCH;
use libc::{c_int, c_void};
use shakedown_trace::Primitive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Algorithms of one kind that can be wrapped.
pub const SLOTS: usize = 128;

/// More algorithms than [`SLOTS`].
#[derive(Debug)]
pub struct Full;

/// Original functions of the algorithms of one kind, `N` functions each, and what each algorithm is.
pub struct Slots<const N: usize, D> {
    used: AtomicUsize,
    functions: [[AtomicPtr<c_void>; N]; SLOTS],
    descriptions: [OnceLock<D>; SLOTS],
}

impl<const N: usize, D> Slots<N, D> {
    /// No algorithm yet.
    pub const fn new() -> Self {
        Self {
            used: AtomicUsize::new(0),
            functions: [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; N] }; SLOTS],
            descriptions: [const { OnceLock::new() }; SLOTS],
        }
    }

    /// Takes the next slot for an algorithm, and replaces its functions.
    ///
    /// `trampolines` names, for each of the `N` places, the function's number and its trampoline for every
    /// slot; functions that the algorithm does not have are left out.
    pub fn wrap(
        &self,
        description: D,
        functions: &mut [OSSL_DISPATCH],
        trampolines: [(c_int, &[*const c_void; SLOTS]); N],
    ) -> Result<(), Full> {
        let slot = self.used.fetch_add(1, Ordering::Relaxed);
        if slot >= SLOTS {
            return Err(Full);
        }
        // Each slot is taken once.
        let _ = self.descriptions[slot].set(description);
        for entry in functions.iter_mut() {
            let place = trampolines.iter().position(|(number, _)| *number == entry.function_id);
            if let Some(place) = place {
                self.functions[slot][place].store(entry.function.cast_mut(), Ordering::Relaxed);
                entry.function = trampolines[place].1[slot];
            }
        }
        Ok(())
    }

    /// The original function at a place of a slot.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that place, and the slot's algorithm must have the function:
    /// which is so for every trampoline that runs, for it was put there in the function's stead.
    #[inline]
    pub unsafe fn original<F: Copy>(&self, slot: usize, place: usize) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let pointer = self.functions[slot][place].load(Ordering::Relaxed);
        // SAFETY: by the caller's promise the pointer is a function of this type.
        unsafe { std::mem::transmute_copy(&pointer) }
    }

    /// What the slot's algorithm is.
    #[inline]
    pub fn description(&self, slot: usize) -> Option<&D> {
        self.descriptions[slot].get()
    }
}

impl<const N: usize> Slots<N, Primitive> {
    /// The primitive that a slot's algorithm always is.
    #[inline]
    pub fn primitive(&self, slot: usize) -> Primitive {
        self.descriptions[slot].get().copied().unwrap_or(UNKNOWN)
    }
}

/// Stands in where a primitive cannot be named; a test shows that no handshake has one.
pub const UNKNOWN: Primitive = Primitive::new(shakedown_trace::Operation::Digest, "unknown", "");

/// The [`SLOTS`] instances of a trampoline.
macro_rules! instances {
    ($trampoline:ident) => {{
        crate::proxy::slots::instances!(@ $trampoline
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
            64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
            96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119
            120 121 122 123 124 125 126 127)
    }};
    (@ $trampoline:ident $($slot:literal)*) => {
        &[$($trampoline::<$slot> as *const libc::c_void),*]
    };
}
pub(super) use instances;
