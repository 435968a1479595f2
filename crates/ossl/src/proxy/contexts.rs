//! What the contexts of OpenSSL's operations work on, from their initialisation until they are freed.
//!
//! A trampoline is handed a context of the original provider, an address that says nothing. What it works on was
//! known when it was initialised, so that is noted here under the address, and forgotten when the context is freed.
//! Contexts outlive calls and go from thread to thread with their connections, so the table is the process's. It
//! is cut into shards by address. A shard has some places that are taken and left without a lock, since a context is
//! used by one thread at a time; only what finds no place there goes to a map behind a lock.

use libc::c_void;
use shakedown_trace::Primitive;
use shakedown_trace::recorder::Ticks;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is known of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// What it works on; `None` where that has no name.
    pub primitive: Option<Primitive>,
    /// Time already spent on the operation that it will complete.
    pub spent: Ticks,
}

/// Notes what a context works on from now on.
pub fn remember(context: *mut c_void, primitive: Option<Primitive>) {
    if !context.is_null() {
        shard(context).insert(context, Note { primitive, spent: 0 });
    }
}

/// What a context works on.
pub fn recall(context: *mut c_void) -> Option<Primitive> {
    shard(context).with(context, |note| note.primitive).flatten()
}

/// True where a context has been noted.
pub fn is_known(context: *mut c_void) -> bool {
    shard(context).with(context, |_| ()).is_some()
}

/// Adds to the time spent on the operation that a context will complete.
pub fn spend(context: *mut c_void, ticks: Ticks) {
    shard(context).with(context, |note| note.spent += ticks);
}

/// What a context has completed: what it works on, and the time spent on it before. The next operation starts at none.
pub fn complete(context: *mut c_void) -> Note {
    let taken = |note: &mut Note| Note { spent: std::mem::take(&mut note.spent), ..*note };
    shard(context).with(context, taken).unwrap_or_default()
}

/// A copy of a context works on the same, and will complete what has been begun: libssl finishes on a copy.
pub fn duplicate(context: *mut c_void, copy: *mut c_void) {
    let taken = |note: &mut Note| Note { spent: std::mem::take(&mut note.spent), ..*note };
    if !copy.is_null()
        && let Some(note) = shard(context).with(context, taken)
    {
        shard(copy).insert(copy, note);
    }
}

/// Forgets a context that is about to be freed.
pub fn forget(context: *mut c_void) {
    shard(context).remove(context);
}

/// Contexts that are known, and how many the table has room for.
#[cfg(test)]
pub fn size() -> (usize, usize) {
    SHARDS.iter().fold((0, 0), |(known, room), shard| {
        let notes = shard.others.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = shard.places.iter().filter(|place| place.load(Ordering::Relaxed) != 0).count();
        (known + placed + notes.len(), room + notes.capacity())
    })
}

const SHARD_BITS: u32 = 6;
static SHARDS: [Shard; 1 << SHARD_BITS] = [const { Shard::new() }; 1 << SHARD_BITS];

/// Contexts that a shard knows without a lock: as many addresses as fill a line of the processor's cache with a count.
const PLACES: usize = 7;

/// The contexts at some of the addresses.
#[repr(C, align(64))]
struct Shard {
    /// How many `others` there are, for those who only want to know whether there are any.
    known: AtomicUsize,
    /// Contexts, or 0 where a place is free.
    places: [AtomicUsize; PLACES],
    /// What is known of each.
    notes: [UnsafeCell<Note>; PLACES],
    others: Mutex<HashMap<usize, Note, BuildHasherDefault<Spread>>>,
}

// SAFETY: a note is touched only by a thread that found its context's address in the note's place. Contexts are used by
// one thread at a time (OpenSSL's own rule for all operation contexts), and between two threads whoever handed the
// context over has synchronised them. A place that was left is taken by compare-and-swap, which sees what was done before.
unsafe impl Sync for Shard {}

/// Spreads addresses evenly: the upper bits of a product depend on all lower bits of its factors.
#[derive(Default)]
struct Spread(u64);

const fn spread(address: u64) -> u64 {
    // Knuth's multiplicative hashing: 2^64 divided by the golden ratio.
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Hasher for Spread {
    fn write_usize(&mut self, address: usize) {
        let product = spread(address as u64);
        // The table takes its place from the low bits, its tag from the high ones.
        self.0 = product.rotate_left(SHARD_BITS + 20);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = spread(self.0 ^ u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn shard(context: *mut c_void) -> &'static Shard {
    &SHARDS[(spread(context as u64) >> (u64::BITS - SHARD_BITS)) as usize]
}

/// A table that has room for more than this gives memory back when it empties.
const KEPT_ROOM: usize = 64;

impl Shard {
    const fn new() -> Self {
        Self {
            known: AtomicUsize::new(0),
            places: [const { AtomicUsize::new(0) }; PLACES],
            notes: [const { UnsafeCell::new(Note { primitive: None, spent: 0 }) }; PLACES],
            others: Mutex::new(HashMap::with_hasher(BuildHasherDefault::new())),
        }
    }

    #[inline]
    fn place(&self, context: *mut c_void) -> Option<usize> {
        // Free places hold 0.
        if context.is_null() {
            return None;
        }
        self.places.iter().position(|place| place.load(Ordering::Relaxed) == context as usize)
    }

    fn insert(&self, context: *mut c_void, note: Note) {
        let known = self.with(context, |known| *known = note);
        if known.is_some() {
            return;
        }
        for (place, kept) in self.places.iter().zip(&self.notes) {
            let taken =
                place.compare_exchange(0, context as usize, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if taken {
                // SAFETY: the place is this context's from now on, and the context this thread's.
                unsafe { *kept.get() = note };
                return;
            }
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.insert(context as usize, note);
        self.known.store(others.len(), Ordering::Relaxed);
    }

    fn with<T>(&self, context: *mut c_void, work: impl FnOnce(&mut Note) -> T) -> Option<T> {
        if let Some(place) = self.place(context) {
            // SAFETY: the place is this context's, and the context this thread's. What is done with notes here comes to no
            // other.
            return Some(work(unsafe { &mut *self.notes[place].get() }));
        }
        // Whoever uses a context has seen it noted, so a count of none is no stale one for this context.
        if self.known.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.get_mut(&(context as usize)).map(work)
    }

    fn remove(&self, context: *mut c_void) {
        if let Some(place) = self.place(context) {
            self.places[place].store(0, Ordering::Release);
            return;
        }
        // As above.
        if self.known.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.remove(&(context as usize));
        if others.capacity() > KEPT_ROOM && others.len() < others.capacity() / 8 {
            let room = others.len() * 2;
            others.shrink_to(room);
        }
        self.known.store(others.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_trace::Operation;

    /// Alone in its process: other tests of this crate make contexts too.
    #[test]
    fn nothing_is_lost_while_contexts_live_and_nothing_kept_when_they_are_freed() {
        if !crate::proxy::in_a_process_of_its_own(
            "proxy::contexts::tests::nothing_is_lost_while_contexts_live_and_nothing_kept_when_they_are_freed",
        ) {
            return;
        }
        const CONTEXTS: usize = 100_000;
        let primitive = Primitive::new(Operation::Mac, "hmac-sha1", "");
        // Addresses such as an allocator gives.
        let context = |number: usize| (0x5555_0000_0000 + number * 48) as *mut c_void;
        for number in 0..CONTEXTS {
            remember(context(number), Some(primitive));
            spend(context(number), number as Ticks);
        }
        for number in (0..CONTEXTS).rev() {
            let copy = context(number + CONTEXTS);
            duplicate(context(number), copy);
            assert_eq!(complete(context(number)), Note { primitive: Some(primitive), spent: 0 });
            assert_eq!(complete(copy), Note { primitive: Some(primitive), spent: number as Ticks });
        }
        let (known, _) = size();
        assert_eq!(known, 2 * CONTEXTS);
        // No shard has far more than its share.
        let crowded = SHARDS.iter().map(|shard| shard.known.load(Ordering::Relaxed)).max();
        assert!(crowded < Some(2 * (2 * CONTEXTS) / SHARDS.len()), "{crowded:?}");
        for number in 0..2 * CONTEXTS {
            forget(context(number));
            assert_eq!(recall(context(number)), None);
        }
        // OpenSSL frees what it has not got.
        forget(std::ptr::null_mut());
        assert_eq!(recall(std::ptr::null_mut()), None);
        let (known, room) = size();
        assert_eq!(known, 0);
        assert!(room <= SHARDS.len() * KEPT_ROOM * 2, "room for {room} is kept");
    }
}
