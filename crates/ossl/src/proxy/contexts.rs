//! The primitive of each context of an OpenSSL operation, from its initialisation until it is freed.
//!
//! A trampoline receives a context of the original provider, of which it knows only the address. The primitive is known
//! at initialisation, so it is noted here under the address, and the note is removed when the context is freed.
//! Contexts outlive calls and move between threads with their connections, so the table is global to the process. It is
//! split into shards by address. A shard has some places that are used without a lock; the notes that find no place
//! there are stored in a map with a lock.
//!
//! # Why this needs no lock
//!
//! Each field of a place is atomic, so there is no data race. The values that are read are correct for these reasons. A
//! context is used by one thread at a time, as OpenSSL requires for contexts of operations, and a thread that passes it
//! to another one synchronises with it. So from [`remember`] to [`forget`], only the thread that uses a context
//! searches for its address and writes to its place, and it sees the writes of earlier users. Other threads only
//! compare the address with theirs. When a context is freed, its place is cleared before its memory is freed. A new
//! context at the same address is synchronised with that by the allocator, so it finds the place empty or with another
//! context's address. An empty place is taken by one compare-and-exchange, so no two threads take it. The note is
//! written afterwards: only the user of that address reads it. If two threads copied a context at once, which OpenSSL's
//! relevant contexts do not support, one copy would get the time that was spent before, and the other none.

use libc::c_void;
use shakedown_trace::Primitive;
use shakedown_trace::recorder::Ticks;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The primitive; `None` if it has no name.
    pub primitive: Option<&'static Primitive>,
    /// Time already spent on the operation that the context will complete.
    pub spent: Ticks,
}

/// Notes the primitive of a context.
pub fn remember(context: *mut c_void, primitive: Option<&'static Primitive>) {
    if !context.is_null() {
        shard(context).insert(context, Note { primitive, spent: 0 });
    }
}

pub fn recall(context: *mut c_void) -> Option<&'static Primitive> {
    shard(context).note(context)?.primitive
}

/// True if a context has a note.
pub fn is_known(context: *mut c_void) -> bool {
    shard(context).note(context).is_some()
}

/// Adds to the time spent on the operation that a context will complete.
pub fn spend(context: *mut c_void, ticks: Ticks) {
    shard(context).with(context, |note| note.spent += ticks);
}

/// The note of a context that completes an operation. The time for the next operation begins at zero.
pub fn complete(context: *mut c_void) -> Note {
    let taken = |note: &mut Note| Note { spent: std::mem::take(&mut note.spent), ..*note };
    shard(context).with(context, taken).unwrap_or_default()
}

/// A copy of a context has the same primitive, and gets the time spent so far: libssl completes operations on a copy.
pub fn duplicate(context: *mut c_void, copy: *mut c_void) {
    let taken = |note: &mut Note| Note { spent: std::mem::take(&mut note.spent), ..*note };
    if !copy.is_null()
        && let Some(note) = shard(context).with(context, taken)
    {
        shard(copy).insert(copy, note);
    }
}

/// Removes the note of a context that is about to be freed.
pub fn forget(context: *mut c_void) {
    shard(context).remove(context);
}

/// Number of notes, and capacity of the maps.
#[cfg(test)]
pub fn size() -> (usize, usize) {
    SHARDS.iter().fold((0, 0), |(known, room), shard| {
        let notes = shard.lock();
        let placed = shard.places.iter().filter(|place| place.load(Relaxed) != 0).count();
        (known + placed + notes.len(), room + notes.capacity())
    })
}

const SHARD_BITS: u32 = 6;
static SHARDS: [Shard; 1 << SHARD_BITS] = [const { Shard::new() }; 1 << SHARD_BITS];

/// Contexts per shard without a lock: with the counter, their addresses fill a cache line.
const PLACES: usize = 7;

#[repr(C, align(64))]
struct Shard {
    /// Number of `others`, which can be read without the lock.
    known: AtomicUsize,
    /// Addresses of contexts; 0 in a free place.
    places: [AtomicUsize; PLACES],
    notes: [AtomicNote; PLACES],
    others: Mutex<Others>,
}

type Others = HashMap<usize, Note, BuildHasherDefault<Spread>>;

/// A note in two parts. Only the thread that uses the context reads and writes them.
struct AtomicNote {
    /// Null if it has no name.
    primitive: AtomicPtr<Primitive>,
    spent: AtomicU64,
}

impl AtomicNote {
    const fn new() -> Self {
        Self { primitive: AtomicPtr::new(ptr::null_mut()), spent: AtomicU64::new(0) }
    }

    #[inline]
    fn load(&self) -> Note {
        // SAFETY: null, or from a `'static` reference, whose value is never written.
        let primitive = unsafe { self.primitive.load(Relaxed).as_ref() };
        Note { primitive, spent: self.spent.load(Relaxed) }
    }

    #[inline]
    fn store(&self, note: Note) {
        let primitive = note.primitive.map_or(ptr::null(), ptr::from_ref);
        self.primitive.store(primitive.cast_mut(), Relaxed);
        self.spent.store(note.spent, Relaxed);
    }
}

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
        // The hash table uses the low bits for the place, and the high bits for the tag.
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

#[inline]
fn shard(context: *mut c_void) -> &'static Shard {
    &SHARDS[(spread(context as u64) >> (u64::BITS - SHARD_BITS)) as usize]
}

/// A map with more capacity than this frees memory when it becomes nearly empty.
const KEPT_ROOM: usize = 64;

impl Shard {
    const fn new() -> Self {
        Self {
            known: AtomicUsize::new(0),
            places: [const { AtomicUsize::new(0) }; PLACES],
            notes: [const { AtomicNote::new() }; PLACES],
            others: Mutex::new(HashMap::with_hasher(BuildHasherDefault::new())),
        }
    }

    /// The place of a context. Not inlined, so that its callers are short.
    #[inline(never)]
    fn place(&self, context: *mut c_void) -> Option<usize> {
        // Free places contain 0.
        if context.is_null() {
            return None;
        }
        self.places.iter().position(|place| place.load(Relaxed) == context as usize)
    }

    fn insert(&self, context: *mut c_void, note: Note) {
        if self.with(context, |known| *known = note).is_some() {
            return;
        }
        for (place, kept) in self.places.iter().zip(&self.notes) {
            // Check first: an attempt to take a place that is not empty costs as much as taking one.
            if place.load(Relaxed) == 0
                && place.compare_exchange(0, context as usize, Ordering::Acquire, Relaxed).is_ok()
            {
                return kept.store(note);
            }
        }
        let mut others = self.lock();
        others.insert(context as usize, note);
        self.known.store(others.len(), Relaxed);
    }

    #[inline]
    fn note(&self, context: *mut c_void) -> Option<Note> {
        match self.place(context) {
            Some(place) => Some(self.notes[place].load()),
            None if self.has_no_others() => None,
            None => self.lock().get(&(context as usize)).copied(),
        }
    }

    /// Changes the note of a context.
    #[inline]
    fn with<T>(&self, context: *mut c_void, work: impl FnOnce(&mut Note) -> T) -> Option<T> {
        match self.place(context) {
            Some(place) => {
                let mut note = self.notes[place].load();
                let result = work(&mut note);
                self.notes[place].store(note);
                Some(result)
            }
            None if self.has_no_others() => None,
            None => self.lock().get_mut(&(context as usize)).map(work),
        }
    }

    /// A thread that uses a context has seen its note, so a count of zero is not outdated for this context.
    #[inline]
    fn has_no_others(&self) -> bool {
        self.known.load(Relaxed) == 0
    }

    #[cold]
    fn lock(&self) -> MutexGuard<'_, Others> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, context: *mut c_void) {
        if let Some(place) = self.place(context) {
            self.places[place].store(0, Ordering::Release);
            return;
        }
        if self.has_no_others() {
            return;
        }
        let mut others = self.lock();
        others.remove(&(context as usize));
        if others.capacity() > KEPT_ROOM && others.len() < others.capacity() / 8 {
            let room = others.len() * 2;
            others.shrink_to(room);
        }
        self.known.store(others.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_trace::Operation;

    /// Four threads create, pass on and free contexts at addresses that all of them use in turn, as with an allocator:
    /// no thread finds another one's note, and no note is left.
    #[test]
    fn reused_addresses_keep_contexts_of_threads_separate() {
        use std::sync::mpsc::channel;
        const THREADS: usize = 4;
        let name = |number: usize| {
            let algorithm = ["hmac-sha1", "hmac-md5", "hmac-sha256", "hmac-sha384"][number % 4];
            Primitive::new(Operation::Mac, algorithm, "").interned()
        };
        // All in one shard, so that its places are used up, and far from any real address.
        let addresses: Vec<usize> = (1..100_000)
            .map(|number| number * 16)
            .filter(|address| ptr::eq(shard(*address as *mut c_void), &SHARDS[5]))
            .take(24)
            .collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<usize>()).unzip();
        for (number, address) in addresses.iter().enumerate() {
            senders[number % THREADS].send(*address).expect("a receiver");
        }
        std::thread::scope(|scope| {
            for (thread, receiver) in receivers.into_iter().enumerate() {
                let next = senders[(thread + 1) % THREADS].clone();
                scope.spawn(move || {
                    for round in 0..5_000 {
                        let Ok(address) = receiver.recv() else { return };
                        let context = address as *mut c_void;
                        assert!(!is_known(context), "freed by its previous owner");
                        remember(context, Some(name(thread + round)));
                        spend(context, thread as Ticks + 1);
                        assert_eq!(recall(context), Some(name(thread + round)));
                        let found = complete(context);
                        assert_eq!(
                            (found.primitive, found.spent),
                            (Some(name(thread + round)), thread as Ticks + 1)
                        );
                        forget(context);
                        if next.send(address).is_err() {
                            return;
                        }
                    }
                });
            }
            // A thread ends if the thread for which it waits has ended.
            drop(senders);
        });
        assert!(addresses.iter().all(|address| !is_known(*address as *mut c_void)));
    }

    /// In a separate process, because other tests of this crate create contexts too.
    #[test]
    fn notes_of_contexts_live_exactly_as_long_as_the_contexts() {
        if !crate::proxy::in_a_process_of_its_own(
            "proxy::contexts::tests::notes_of_contexts_live_exactly_as_long_as_the_contexts",
        ) {
            return;
        }
        const CONTEXTS: usize = 100_000;
        let primitive = Primitive::new(Operation::Mac, "hmac-sha1", "").interned();
        // Addresses like those of an allocator.
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
        // No shard has far more contexts than the average.
        let crowded = SHARDS.iter().map(|shard| shard.known.load(Relaxed)).max();
        assert!(crowded < Some(2 * (2 * CONTEXTS) / SHARDS.len()), "{crowded:?}");
        for number in 0..2 * CONTEXTS {
            forget(context(number));
            assert_eq!(recall(context(number)), None);
        }
        // OpenSSL may free a null context.
        forget(std::ptr::null_mut());
        assert_eq!(recall(std::ptr::null_mut()), None);
        let (known, room) = size();
        assert_eq!(known, 0);
        assert!(room <= SHARDS.len() * KEPT_ROOM * 2, "room for {room} is kept");
    }
}
